"""The pages of API keys."""

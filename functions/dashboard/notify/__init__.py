"""The pages of webhooks, and of the emails that a person receives."""

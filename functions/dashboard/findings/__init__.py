"""The pages of the inbox and of its findings."""

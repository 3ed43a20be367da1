"""The pages of connected repositories, and how a person connects one."""

"""Generates parts of the Python SDK in cli/: its models, and the synchronous client."""

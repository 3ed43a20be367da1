"""Generates parts of the Python SDK in cli/: its models, its operations, and the synchronous client."""

"""The clients: their resources, and how they send requests."""

"""Organizations: list, get, and create."""

"""Reports on the service itself, from agents and people."""

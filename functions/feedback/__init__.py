"""Feedback on the service, from agents and people."""

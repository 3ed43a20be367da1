# Made from _async/__init__.py by `make sdk`: edit that file.
"""The clients: their resources, and how they send requests."""

# Made from _async/__init__.py by `make sdk`: edit that file.
"""The asynchronous client. The synchronous one is made from it."""

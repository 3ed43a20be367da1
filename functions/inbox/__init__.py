"""The inbox: what was found, what people decided about it, and the issues they opened for it."""

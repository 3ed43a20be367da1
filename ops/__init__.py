"""`assent-ops`, the operator's command line: what must be done and has no API.

It acts through the shared layer's store, under the rules that the API keeps.
"""

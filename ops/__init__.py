"""`assent-ops`, the operator's command line, for tasks that have no API.

It uses the shared layer's store and follows the same rules as the API. `program` selects the table and runs a command;
each group of commands is a module. A command returns what it prints.
"""

"""The ground that every subject builds on: the table, the queues, and HTTP. Imports no subject."""

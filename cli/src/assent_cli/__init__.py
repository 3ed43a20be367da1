"""The command line `assent`."""

"""Compares the service with the naive peer under load, and soaks it: `python -m benchmarks.load --help`."""

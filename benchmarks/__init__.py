"""Measures what the control plane costs, as ratios: `make bench`, or `python -m benchmarks --help`."""

from benchmarks import environment

environment.apply()

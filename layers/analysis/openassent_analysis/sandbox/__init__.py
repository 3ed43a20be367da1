"""Runs the analysis of a tenant's files in child processes that can do nothing but compute.

`pool` is the parent's side: it spreads the files over a few children, and kills those that exceed a limit.
`process` is its connection to one of them. `child` is their program. `seccomp` is the filter that denies them files,
the network, and other processes.
"""

from openassent_analysis.sandbox.pool import Sandbox
from openassent_analysis.sandbox.process import Bounds, SandboxUnavailable

__all__ = ["Bounds", "Sandbox", "SandboxUnavailable"]

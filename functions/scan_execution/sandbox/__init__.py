"""Runs the analysis of a tenant's files in a child process that can do nothing but compute.

`process` is the parent's side: it starts the child, sends it one file at a time, and kills it if it exceeds a limit.
`child` is the child's program. `seccomp` is the filter that denies it files, the network, and other processes.
"""

from scan_execution.sandbox.process import Bounds, Sandbox, SandboxUnavailable

__all__ = ["Bounds", "Sandbox", "SandboxUnavailable"]

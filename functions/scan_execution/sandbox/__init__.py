"""Runs the analysis of a tenant's files in a child process that can do nothing but compute.

`process` is the parent's side: it starts the child, hands it one file at a time, and ends it when it exceeds a limit.
`child` is what the child runs. `seccomp` is the filter that leaves it no way to a file, a network or another process.
"""

from scan_execution.sandbox.process import Bounds, Sandbox, SandboxUnavailable

__all__ = ["Bounds", "Sandbox", "SandboxUnavailable"]

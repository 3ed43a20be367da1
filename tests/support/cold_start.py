"""Finds what a cold start loads, by importing a module in a new process."""

import subprocess
import sys


def loaded_by(module: str, names: set[str]) -> set[str]:
    """Returns which of the named modules are loaded by importing this one."""
    script = f"import sys; sys.path[:0] = {sys.path!r}; import {module}; print(*{names!r} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())

"""What a cold start loads: a module is imported in a process of its own, where nothing else was."""

import subprocess
import sys


def loaded_by(module: str, names: set[str]) -> set[str]:
    """Those of the modules that importing this one loads."""
    script = f"import sys; sys.path[:0] = {sys.path!r}; import {module}; print(*{names!r} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())

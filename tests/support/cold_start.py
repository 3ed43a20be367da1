"""Finds what a cold start loads, and runs programs as Lambda runs a function: in a new process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("functions", "layers/shared", "layers/analysis")


def loaded_by(module: str, names: set[str]) -> set[str]:
    """Returns which of the named modules are loaded by importing this one."""
    script = f"import sys; sys.path[:0] = {sys.path!r}; import {module}; print(*{names!r} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def run_as_lambda(program: str, *arguments: str, without: tuple[str, ...] = (), **variables: str) -> list[str]:
    """Runs a program with the functions and layers on its path, and returns the lines that it printed.

    without: beginnings of this process's variables that the program doesn't get.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", *without))}
    packages = ":".join(str(ROOT / folder) for folder in (*PACKAGES, ""))
    command = [sys.executable, "-c", program, *arguments]
    environment = {**kept, "PYTHONPATH": packages, **variables}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()

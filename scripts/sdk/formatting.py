"""Formats generated modules as `make lint` expects them."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_RUFF = Path(sys.executable).parent / "ruff"
# Sorted imports, also of modules that don't exist yet, and `yield from`, which asynchronous code doesn't have.
_FIXES = ("--fix", "--unsafe-fixes", "--select=I,UP028", "--config=lint.isort.known-first-party=['openassent']")


def formatted(texts: Mapping[Path, str]) -> dict[Path, str]:
    """Returns the texts in the project's format. The path of each determines its rules."""
    return {path: _run(path, _run(path, text, "check", *_FIXES), "format") for path, text in texts.items()}


def _run(path: Path, text: str, *command: str) -> str:
    arguments = [str(_RUFF), *command, "--quiet", "--stdin-filename", str(path), "-"]
    ran = subprocess.run(arguments, input=text, capture_output=True, text=True, check=True)  # noqa: S603
    return ran.stdout

"""The local stack as `make run` starts it, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from local.checkout import ROOT, free_port

_SCREEN_END = "Ctrl-C stops everything."
# Set by make, and AUTH and SAM_LOCAL of other stacks.
_OTHERS = {"AUTH", "LOG_LEVEL", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "SAM_LOCAL"}


class LocalStack:
    """One `python -m local` on a free port, with its own data."""

    def __init__(self, directory: Path, **variables: str) -> None:
        """Starts it, and returns once it is ready."""
        self.port = free_port()
        self.directory = directory
        kept = {name: value for name, value in os.environ.items() if name not in _OTHERS}
        self.environment = kept | {"PORT": str(self.port), "LOCAL_DIRECTORY": str(directory)} | variables
        self.process = subprocess.Popen(
            [sys.executable, "-m", "local"],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        self.screen = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.screen += line
            if _SCREEN_END in line:
                return
        raise AssertionError(f"the stack ended before it was ready:\n{self.screen}")

    @property
    def credentials(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "credentials.json").read_text())
        return found

    @property
    def ministack_port(self) -> int:
        port: int = json.loads((self.directory / "stack.json").read_text())["ministack_port"]
        return port

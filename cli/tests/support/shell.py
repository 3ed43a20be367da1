"""Runs the command line in this process, and git."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from openassent_cli.main import app

# Made once: that takes a tenth of a second.
COMMAND: Any = get_command(app)


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


def commands(parent: Any = COMMAND, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yields every command, and every group before its commands, by name."""
    for part, command in parent.commands.items():
        yield f"{name}{part}", command
        yield from commands(command, f"{name}{part} ") if is_group(command) else ()


def is_group(command: Any) -> bool:
    return hasattr(command, "commands")


def run(line: str, *, terminal: bool = False, **environment: str) -> Ended:
    """Runs a command line. terminal: whether its output is shown in one, with 120 columns."""
    variables = {**environment, **({"TTY_COMPATIBLE": "1", "COLUMNS": "120"} if terminal else {})}
    code = 0
    with CliRunner(env=variables).isolation() as (stdout, stderr, _):
        try:
            COMMAND.main(shlex.split(line), prog_name="assent")
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        return Ended(code, stdout.getvalue().decode(), stderr.getvalue().decode())


def run_git(folder: Path, *arguments: str) -> str:
    """Runs git with an author in a folder, and returns its output."""
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

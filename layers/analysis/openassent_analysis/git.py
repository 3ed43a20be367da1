"""Runs git in a folder, and reads which of its files belong to the project, and the repository's name.

Runs nothing that the repository's own configuration names: no monitor, no hook, and no transport to fetch files that a
partial clone leaves out. Git's filters can't be turned off by an option, so don't run a command here that compares or
writes files.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess  # nosec B404
import sys
from pathlib import Path
from typing import Final

_SECONDS: Final = 60
# Programs that a repository's configuration may start.
_OPTIONS: Final = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
# Git would fetch with programs that the configuration names. An unknown protocol allows none.
_VARIABLES: Final = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
_LONGEST_ADDRESS: Final = 250
_ADDRESS: Final = re.compile(r"[/:]([\w.-]{1,100}/[\w.-]{1,100}?)(?:\.git)?/?\Z")


def list_files(folder: Path) -> list[str] | None:
    """Returns the files that git tracks or would add, relative to the folder. Some may be deleted, or be folders.

    Returns None if git isn't installed, the folder isn't in a working tree, or git ignores all of it.
    """
    listed = _output(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    # A file with a merge conflict is listed more than once.
    return [*dict.fromkeys(filter(None, listed.split("\0")))] if listed else None


def repository_of(folder: Path) -> str:
    """Returns OWNER/NAME of the folder's repository on its code host, or an empty string if it has none."""
    address = _output(folder, "config", "--get", "remote.origin.url") or ""
    found = _ADDRESS.search(address.strip()[-_LONGEST_ADDRESS:])
    return found[1] if found else ""


def run(folder: Path, *arguments: str, seconds: float | None = None) -> subprocess.CompletedProcess[str] | None:
    """Returns how git ended, or None if it isn't installed or took longer."""
    program = shutil.which("git")
    if program is None:
        return None
    # In a hook, git's own variables describe another folder.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(  # nosec B603  # noqa: S603
            [program, *_OPTIONS, *arguments],
            cwd=folder,
            env=environment | _VARIABLES,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding=sys.getfilesystemencoding(),
            errors=sys.getfilesystemencodeerrors(),
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _output(folder: Path, *arguments: str) -> str | None:
    """Returns the output, or None if git isn't installed or fails."""
    done = run(folder, *arguments, seconds=_SECONDS)
    return done.stdout if done is not None and done.returncode == 0 else None

"""The temporary folder that holds a tenant's source while a scan runs.

A killed worker leaves its folder behind, and the next invocation in the same Lambda environment shares the disk, so
each scan first removes leftover folders. A folder is locked (flock(2)) while its scan runs, because scans on one
machine share the temporary folder. The kernel releases the lock when the process dies.
"""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "scan-source-"
_NAME = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")


@contextmanager
def scan_folder() -> Iterator[Path]:
    """Yields an empty folder and removes it on exit. First removes leftovers of killed scans."""
    remove_leftovers()
    folder, lock = _make()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_leftovers() -> None:
    """Removes the folders of scans that have ended. Keeps those of running scans, and folders of other programs."""
    with os.scandir(tempfile.gettempdir()) as entries:
        found = [Path(it.path) for it in entries if _NAME.fullmatch(it.name) and it.is_dir(follow_symlinks=False)]
    for folder in found:
        lock = _lock(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _make() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = _lock(folder)
        # Between the two lines above, another scan may have removed the folder as a leftover.
        if lock is not None:
            if folder.exists():
                return folder, lock
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """Locks a folder of this user. Returns the descriptor, or None if another scan holds the lock or it is gone."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if os.fstat(lock).st_uid != os.geteuid():
            raise PermissionError
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock

"""Issues on disk, one file each: <root>/<owner>/<name>/<number>.json."""

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from controlplane.platform.core import clock


@dataclass(frozen=True, slots=True)
class StoredIssue:
    """Times are Unix seconds; GitHub shows no smaller unit."""

    number: int
    title: str
    body: str | None
    labels: tuple[str, ...]
    created_seconds: int
    updated_seconds: int
    state: str = "open"


class Issues:
    """Every issue below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()

    def create(self, owner: str, name: str, title: str, body: str | None, labels: Sequence[str]) -> StoredIssue:
        folder = self._root / owner / name
        folder.mkdir(parents=True, exist_ok=True)
        with self._lock:
            number = 1 + max((int(path.stem) for path in folder.glob("*.json")), default=0)
            now = int(clock.now())
            issue = StoredIssue(number, title, body, tuple(labels), now, now)
            unfinished = folder / f"{number}.new"
            unfinished.write_text(json.dumps(asdict(issue), indent=1))
            unfinished.replace(folder / f"{number}.json")
        return issue

    def next_number(self, owner: str, name: str, taken: Sequence[int]) -> int:
        """Returns a number for a pull request, which shares the issues' numbers. `taken` are those of pull requests."""
        return 1 + max([*(it.number for it in self.list(owner, name)), *taken], default=0)

    def set_state(self, owner: str, name: str, number: int, state: str) -> StoredIssue | None:
        """Closes or reopens the issue. Returns None if it doesn't exist."""
        with self._lock:
            found = self.find(owner, name, number)
            if found is None:
                return None
            changed = replace(found, state=state, updated_seconds=int(clock.now()))
            path = self._root / owner / name / f"{number}.json"
            unfinished = path.with_suffix(".new")
            unfinished.write_text(json.dumps(asdict(changed), indent=1))
            unfinished.replace(path)
        return changed

    def find(self, owner: str, name: str, number: int) -> StoredIssue | None:
        try:
            return _read(self._root / owner / name / f"{number}.json")
        except FileNotFoundError:
            return None

    def list(self, owner: str, name: str) -> list[StoredIssue]:
        """Returns the issues, oldest first."""
        issues = [_read(path) for path in (self._root / owner / name).glob("*.json")]
        return sorted(issues, key=lambda issue: issue.number)


def _read(path: Path) -> StoredIssue:
    content = json.loads(path.read_text())
    return StoredIssue(**content | {"labels": tuple(content["labels"])})

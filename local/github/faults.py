"""Faults of a code host. Only Python code can switch them on; nothing that a client sends has an effect."""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that replaces the response to one request.

    `takes_effect`: the request is carried out first, and only its response is lost. `hang_seconds` delays the
    response. `cut_after_bytes` ends the connection in the middle of the body.
    """

    status: int = 502
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Any = None
    takes_effect: bool = False
    hang_seconds: float = 0
    cut_after_bytes: int | None = None


@dataclass(slots=True)
class Quota:
    """The requests that an installation has left, and when their number is reset, in Unix seconds."""

    left: int
    resets_at: int


class Faults:
    """The pending faults by operation ("POST /repos/{owner}/{repo}/issues"). Each affects one request, in order."""

    def __init__(self) -> None:
        self.list_lag_seconds = 0.0
        """How much later than its creation an issue appears in the list."""

        self.suspended: set[int] = set()
        """Installations that their owner suspended."""

        self.withheld: dict[int, set[str]] = {}
        """Permissions, by installation, that its owner has not granted."""

        self.without_issues: set[str] = set()
        """Repositories (owner/name) that have issues turned off."""

        self.removed: set[str] = set()
        """Repositories (owner/name) that the installation no longer includes."""

        self.renamed: dict[str, str] = {}
        """Repositories (owner/name) that are called something else now."""

        self.quotas: dict[int, Quota] = {}
        """The quotas of installations. Without one, their requests aren't counted."""

        self._waiting: dict[str, deque[Fault]] = {}
        self._lock = threading.Lock()

    def add(self, operation: str, *faults: Fault) -> None:
        with self._lock:
            self._waiting.setdefault(operation, deque()).extend(faults)

    def take(self, operation: str) -> Fault | None:
        with self._lock:
            waiting = self._waiting.get(operation)
            return waiting.popleft() if waiting else None

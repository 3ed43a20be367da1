"""Faults of a code host. Only Python code can switch them on; nothing that a client sends has an effect."""

from collections import defaultdict, deque
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


@dataclass(slots=True)
class Faults:
    """The states of a code host that requests fail in. Repositories are named as owner/name.

    list_lag_seconds: how much later than its creation an issue appears in the list. withheld: permissions, by
    installation, that its owner has not granted. removed: repositories that the installation no longer includes.
    renamed: the current names of repositories. quotas: without one, an installation's requests aren't counted.
    """

    list_lag_seconds: float = 0
    suspended: set[int] = field(default_factory=set)
    withheld: dict[int, set[str]] = field(default_factory=dict)
    without_issues: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    quotas: dict[int, Quota] = field(default_factory=dict)
    # By operation ("POST /repos/{owner}/{repo}/issues"). Each affects one request, in order.
    _waiting: defaultdict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))

    def add(self, operation: str, *faults: Fault) -> None:
        self._waiting[operation].extend(faults)

    def take(self, operation: str) -> Fault | None:
        waiting = self._waiting[operation]
        return waiting.popleft() if waiting else None

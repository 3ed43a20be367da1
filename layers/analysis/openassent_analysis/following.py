"""Follows code to its users: reads the files that use it, then the files that use those, until each gate is decided.

Reads the tree once per round, and asks the sandboxed process only about files that contain the name of a wanted file.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from openassent_analysis import files, modules
from openassent_analysis.files import Skipped
from openassent_analysis.gating import Gating
from openassent_analysis.limits import Limits
from openassent_analysis.links import Links
from openassent_analysis.modules import Content
from openassent_analysis.report import OWN, USES, Entry, Examine, Report, Request

_ROUNDS: Final = 6
_MAX_FILES: Final = 2_000
_MAX_WANTED: Final = 60
_MIN_LENGTH: Final = 2
_WORDS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_UNUSUAL: Final = re.compile(r"[^\w.@~$/-]")
_WITHOUT_USES: Final = frozenset({"manifest", "lock file", "python"})


@dataclass(slots=True)
class Following:
    """Completes the links of a project. `again` returns the files that are read, for another look at some of them."""

    links: Links
    again: Callable[[], Iterable[Entry]]
    examine: Examine
    limits: Limits
    deadline: float
    _asked: int = 0

    def follow(self, undecided: Iterable[tuple[str, Gating]]) -> None:
        undecided = list(dict.fromkeys(undecided))
        for _ in range(_ROUNDS):
            searched: dict[str, None] = {}
            names: dict[str, None] = {}
            read: dict[str, None] = {}
            for path, gating in undecided:
                frontier = self.links.frontier(path, gating)
                searched |= dict.fromkeys(frontier.files)
                names |= dict.fromkeys(frontier.names)
                read |= dict.fromkeys(frontier.providers)
            wanted = [path for path in searched if len(modules.stem(path)) >= _MIN_LENGTH][:_MAX_WANTED]
            shared = list(names)[:_MAX_WANTED]
            if not (wanted or read) or self._ends():
                return
            own = {path for path in (*wanted, *read) if not self.links.is_read(path)}
            for request, outcome in self.examine(self._requests(wanted, shared, own), self.deadline):
                if isinstance(outcome, Report):
                    self.links.add(request.path, outcome)
            self.links.mark(wanted, shared, own)

    def _ends(self) -> bool:
        return self._asked >= _MAX_FILES or time.monotonic() > self.deadline

    def _requests(self, wanted: list[str], shared: list[str], own: set[str]) -> Iterator[Request]:
        """Yields the files to read: those in `own`, and those that may use a wanted one or a shared function."""
        stems = ",".join(dict.fromkeys(it for path in wanted for it in sorted(modules.stems_of(path))))
        words = list(dict.fromkeys(word for path in wanted for word in _spellings(path)))
        words += [name.encode() for name in shared]
        # A folder's index can be imported as `.` or `..`.
        near = tuple(f"{path.rpartition('/')[0]}/" for path in wanted if "/index." in path)
        # Other files may write these names in ways that `may_use` doesn't recognize.
        unusual = any(_UNUSUAL.search(path) for path in wanted)
        prose = Content(wanted)
        for path, read in self.again():
            if self._ends():
                return
            if prose.may_use(path):
                with suppress(Skipped):
                    for used in prose.used_in(path, read(self.limits.max_file_bytes)):
                        self.links.use(path, used)
            language = files.language_of(path.rpartition("/")[2])
            if language is None or language in _WITHOUT_USES:
                continue
            try:
                content = read(self.limits.max_file_bytes)
            except Skipped:
                continue
            if path in own or path.startswith(near) or any(word in content for word in words):
                self._asked += 1
                own_too = OWN if unusual or path in own else ""
                yield Request(path, f"{USES}{language} {stems} {','.join(shared)}{own_too}", content)


def _spellings(path: str) -> list[bytes]:
    """Returns how other files may write a file's name."""
    name, last = modules.name(path), modules.without_extensions(path).rpartition("/")[2]
    kebab = "-".join(_WORDS.findall(name)).lower()
    words = dict.fromkeys((name, kebab, "" if last == "src" else last))
    return [it.encode() for it in words if len(it) >= _MIN_LENGTH]

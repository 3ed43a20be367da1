"""Reads files again whose addresses of scripts are in other files of the project, with these addresses."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from openassent_analysis import files, modules
from openassent_analysis.files import Skipped
from openassent_analysis.limits import Limits
from openassent_analysis.links import Links
from openassent_analysis.report import (
    ADDRESSES,
    ANYWHERE,
    DATA,
    GIVEN,
    MAX_ADDRESSES,
    WITHOUT_EXPORTS,
    Address,
    Answer,
    Entry,
    Examine,
    Report,
    Request,
)

_MAX_FILES: Final = 200
_MAX_NAMES: Final = 100
_WORD: Final = re.compile(r"\w+")


@dataclass(slots=True)
class Importing:
    """Finds the addresses that files import. `again` returns the project's files for another look at some of them."""

    links: Links
    data: frozenset[str]
    again: Callable[[], Iterable[Entry]]
    examine: Examine
    limits: Limits
    deadline: float
    # By file and name in it: the files and the local names that take its value.
    _takers: dict[str, dict[str, list[tuple[str, str]]]] = field(default_factory=dict)

    def read_again(self, wanted: Mapping[str, list[Address]]) -> Iterator[Answer]:
        """Yields new answers about the files whose addresses were found."""
        givers = self._givers({it.name for taken in wanted.values() for it in taken if it.module == ANYWHERE})
        for importer, taken in wanted.items():
            for module, name, local in taken:
                for path in givers.get(name, ()) if module == ANYWHERE else self._resolve(importer, module):
                    if path in self._takers or len(self._takers) < _MAX_FILES:
                        self._takers.setdefault(path, {}).setdefault(name, []).append((importer, local))
        given: dict[str, dict[str, str]] = {}
        for request, outcome in self._examined({path: self._question(path) for path in self._takers}):
            for _, name, address in outcome.addresses if isinstance(outcome, Report) else ():
                for importer, local in self._takers[request.path].get(name, ()):
                    given.setdefault(importer, {})[local] = address
        yield from self._examined({
            path: f"{GIVEN}{files.language_of(path.rpartition('/')[2])} {json.dumps(known)}"
            for path, known in given.items()
        })  # fmt: skip

    def _givers(self, names: set[str]) -> dict[str, list[str]]:
        """Returns the files that may give a name an address, by name."""
        found: dict[str, list[str]] = {}
        wanted = {name: [it.encode() for it in _WORD.findall(name)[-2:]] for name in sorted(names)[:_MAX_NAMES]}
        for path, read in self.again() if wanted else ():
            if files.language_of(path.rpartition("/")[2]) not in WITHOUT_EXPORTS:
                continue
            if time.monotonic() > self.deadline:
                break
            with suppress(Skipped):
                content = read(self.limits.max_file_bytes)
                for name, words in wanted.items() if b"//" in content else ():
                    if all(word in content for word in words):
                        found.setdefault(name, []).append(path)
        return found

    def _question(self, path: str) -> str:
        language = DATA if path in self.data else files.language_of(path.rpartition("/")[2])
        return f"{ADDRESSES}{language} {','.join(list(self._takers[path])[:MAX_ADDRESSES])}"

    def _resolve(self, importer: str, module: str) -> list[str]:
        if module.endswith(".json"):
            wanted = modules.joined(importer, module)
            return [path for path in (wanted, f"src/{wanted}") if path in self.data]
        return [path for path in self.links.resolve(importer, module) if path != importer]

    def _examined(self, questions: Mapping[str, str]) -> Iterator[Answer]:
        if questions and time.monotonic() < self.deadline:
            yield from self.examine(self._requests(questions), self.deadline)

    def _requests(self, questions: Mapping[str, str]) -> Iterator[Request]:
        left = len(questions)
        for path, read in self.again():
            if path in questions:
                with suppress(Skipped):
                    yield Request(path, questions[path], read(self.limits.max_file_bytes))
                left -= 1
            if not left:
                return

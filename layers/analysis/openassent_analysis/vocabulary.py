"""Finds which of many words a text contains, for most files without searching it for any of them.

A word's longest run of letters and digits is inside one such run of the text. The files of a project share most of
their runs, so which words can be in a run is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Final

_RUN: Final = re.compile(r"\w+")
# Splitting ASCII at blanks is several times faster.
_OTHERS: Final = dict.fromkeys((code for code in range(128) if not _RUN.match(chr(code))), " ")
_LONGEST: Final = 60
_MOST_REMEMBERED: Final = 200_000


class _Words:
    """All words that texts are searched for, by their longest run."""

    def __init__(self) -> None:
        self.all: frozenset[str] = frozenset()
        self._by_run: dict[str, list[str]] = {}
        self._without_run: list[str] = []
        # The words' runs inside the runs of texts, and all runs that were seen.
        self._inside: dict[str, tuple[str, ...]] = {}
        self._seen: set[str] = set()

    def add(self, words: Iterable[str]) -> None:
        for word in {*words} - self.all:
            runs = _RUN.findall(word)
            if runs:
                self._by_run.setdefault(max(runs, key=len), []).append(word)
            else:
                self._without_run.append(word)
        self.all = self.all.union(words)
        self._forget()

    def _forget(self) -> None:
        self._inside.clear()
        self._seen.clear()

    def found_in(self, text: str, runs: AbstractSet[str]) -> frozenset[str]:
        if len(self._seen) > _MOST_REMEMBERED:
            self._forget()
        inside: set[str] = set()
        new = runs - self._seen
        together = " ".join(new)
        known = [run for run in self._by_run if run in together]
        for run in new:
            if found := tuple(it for it in known if it in run):
                inside.update(found)
                if len(run) <= _LONGEST:
                    self._inside[run] = found
        self._seen.update(run for run in new if len(run) <= _LONGEST)
        for run in runs & self._inside.keys():
            inside.update(self._inside[run])
        likely = (word for run in inside for word in self._by_run[run] if word == run or word in text)
        return frozenset((*likely, *(word for word in self._without_run if word in text)))


_WORDS: Final = _Words()


def sought(words: Iterable[str]) -> frozenset[str]:
    """Returns the words, which all texts are searched for from now on. They have no blanks."""
    kept = frozenset(words)
    _WORDS.add(kept)
    return kept


class Vocabulary:
    """The words of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.runs: Final = frozenset(text.translate(_OTHERS).split() if text.isascii() else _RUN.findall(text))
        self._asked = _WORDS.all
        self._found = _WORDS.found_in(text, self.runs)

    def present(self, words: frozenset[str]) -> frozenset[str]:
        """Returns those of the words that the text contains."""
        later = words - self._asked
        found = words & self._found
        return found.union(word for word in later if word in self._text) if later else found

    @cached_property
    def lower_runs(self) -> frozenset[str]:
        return frozenset(map(str.lower, self.runs))


class Names:
    """Names of which a text can only contain those whose runs are all whole runs of the text."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_run: dict[str, list[frozenset[str]]] = {}
        for runs in {frozenset(_RUN.findall(name)) for name in names}:
            self._by_run.setdefault(max(runs, key=len), []).append(runs)

    def may_be_in(self, runs: frozenset[str]) -> bool:
        by_run: Mapping[str, list[frozenset[str]]] = self._by_run
        return any(name <= runs for run in runs & by_run.keys() for name in by_run[run])

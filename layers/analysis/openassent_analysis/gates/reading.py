"""Reads one file's evidence about consent: combines the modules of this package, which need each other's answers."""

from __future__ import annotations

import time
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.files import Skipped
from openassent_analysis.gates import callers, expressions, walk
from openassent_analysis.gates.context import OTHER, RUNS, WAITS, Found, Implied, Meaning
from openassent_analysis.gates.index import Index, Place
from openassent_analysis.sources import Source

# Bounds the chain of names and callers that is followed.
_MAX_DEPTH: Final = 40


class Reading:
    """Returns the meaning of conditions and the gates of code. Computes each once."""

    def __init__(self, source: Source) -> None:
        # Doesn't refer to the source, which refers to this object: the file is freed at once.
        self.language: Final = source.language
        self.index: Final = Index(source.blocks, source.text)
        self._deadline: Final = source.deadline
        self._depth = 0
        self._meanings: dict[SgNode, Meaning | None] = {}
        self._found: dict[tuple[SgNode, SgNode | None], Found | None] = {}
        self._callers: dict[SgNode, Found | None] = {}
        self._guards: dict[SgNode, list[tuple[int, Implied]]] = {}
        self._categories: dict[SgNode, bool] = {}

    def meaning(self, block: Block, node: SgNode) -> Meaning:
        if node in self._meanings:
            return self._meanings[node] or OTHER
        if self._depth >= _MAX_DEPTH:
            return OTHER
        self._meanings[node] = None
        self._depth += 1
        found = expressions.meaning(self, block, node)
        self._depth -= 1
        self._meanings[node] = found
        return found

    def found(self, block: Block, node: SgNode, inside: SgNode | None = None) -> Found:
        key = node, inside
        if key in self._found or self._depth >= _MAX_DEPTH:
            return self._found.get(key) or RUNS
        if time.thread_time() > self._deadline:
            raise Skipped("too slow")
        self._found[key] = None
        self._depth += 1
        found = walk.found(self, block, node, inside)
        self._depth -= 1
        self._found[key] = found
        return found

    def callers(self, block: Block, function: SgNode) -> Found:
        if function in self._callers:
            # A function that calls itself runs only if something else calls it.
            return self._callers[function] or WAITS
        self._callers[function] = None
        self._depth += 1
        found = callers.callers(self, block, function) if self._depth < _MAX_DEPTH else RUNS
        self._depth -= 1
        self._callers[function] = found
        return found

    def given_to(self, function: SgNode) -> list[SgNode]:
        return callers.given_to(self, function)

    def calls(self, function: SgNode) -> list[Place] | None:
        return callers.calls_of(self, function)

    def guards(self, block: Block, sequence: SgNode) -> list[tuple[int, Implied]]:
        if sequence in self._guards or self._depth >= _MAX_DEPTH:
            return self._guards.get(sequence, [])
        self._guards[sequence] = []
        self._depth += 1
        self._guards[sequence] = walk.guards_of(self, block, sequence)
        self._depth -= 1
        return self._guards[sequence]

    def has_category(self, properties: SgNode) -> bool:
        if properties not in self._categories:
            self._categories[properties] = walk.category_of(properties)
        return self._categories[properties]


def reading_of(source: Source) -> Reading:
    """Returns the answers about a file, which are kept with it."""
    reading: Reading = source.consent or Reading(source)
    source.consent = reading
    return reading

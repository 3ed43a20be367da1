"""The base of the readers of all syntaxes: finds the end of a delimiter, and takes what is before it."""

from __future__ import annotations

import re
from typing import Final

from scan_execution.analysis.templates.dialects import Dialect
from scan_execution.analysis.templates.markup import Markup

# A delimiter is one only if its end is near.
NEAR: Final = 3_000
_MAX_NESTED: Final = 20
_BRACKETS: Final = re.compile(r"[()]")


class Reader:
    def __init__(self, markup: Markup, dialect: Dialect) -> None:
        self._markup = markup
        self._text = markup.text
        self._dialect = dialect
        self._ended: set[str] = set()

    def _find(self, end: str, start: int, most: int | None = None) -> int:
        """Returns where a delimiter is, or -1. Searches a text without it only once."""
        if end in self._ended:
            return -1
        found = self._text.find(end, start, len(self._text) if most is None else start + most)
        if found < 0 and most is None:
            self._ended.add(end)
        return found

    def _take(self, start: int, end: int, *, shows: bool = False) -> int:
        self._markup.copy(start)
        if shows:
            self._markup.fill(end)
        else:
            self._markup.blank(end)
        return end

    def _insert_script(self, start: int, end: int, address: str) -> int:
        """Adds a script element that a statement writes, inside of the statement."""
        self._markup.copy(start)
        self._markup.blank(end - 1)
        self._markup.insert(f'<script src="{address}"></script>', start)
        self._markup.blank(end)
        return end


def after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def closing_bracket(text: str, opening: int) -> int:
    """Returns where a bracket is closed, or -1 if that isn't near."""
    depth = 0
    for found in _BRACKETS.finditer(text, opening, opening + NEAR):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.start()
        if depth > _MAX_NESTED:
            break
    return -1

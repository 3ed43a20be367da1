"""The base of the readers of all syntaxes: finds the end of a delimiter, and takes the text before it."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

from openassent_analysis.templates import code, scriptlets
from openassent_analysis.templates.dialects import Dialect
from openassent_analysis.templates.markup import Markup

# What comes before the address of an element, or before one that a script sets.
_IN_SOURCE: Final = re.compile(r"""(?:\s(?:data-)?|\.)src\s?=\s?["'`]?$""", re.IGNORECASE)
# An expression that writes an array of consent defaults as JSON: the array itself, or the name of what has it.
_JSON: Final = re.compile(r"json(?:_encode)?+\(\s{0,9}(?:\$?(?P<name>\w{2,60}))?")
_NAMED: Final = re.compile(r"(?:\$(?P<variable>\w{2,60}+)\s{0,9}=|\bfunction\s{1,4}&?(?P<function>\w{2,60}+)\s{0,4}\()")
_DEFAULT: Final = re.compile(r"""["'](?P<name>\w{2,40}_storage)["']\s{0,9}(?:=>|:)\s{0,9}["'](?P<value>\w{2,20})["']""")
_END: Final = re.compile(r"[)\]]\s{0,9};")
_LONGEST_DEFAULTS: Final = 1_000


class Reader:
    def __init__(self, markup: Markup, dialect: Dialect) -> None:
        self._markup = markup
        self._text = markup.text
        self._dialect = dialect
        self._ended: set[str] = set()

    @cached_property
    def _code(self) -> code.Code:
        return code.Code(self._markup, self._dialect.kind)

    def _find(self, end: str, start: int, most: int | None = None) -> int:
        """Returns where a delimiter is, or -1. Searches a text without it only once."""
        if end in self._ended:
            return -1
        found = self._text.find(end, start, len(self._text) if most is None else start + most)
        if found < 0 and most is None:
            self._ended.add(end)
        return found

    def _take(self, start: int, end: int, *, shows: bool = False) -> int:
        if shows and (defaults := self._defaults(start, end)):
            return self._replace(start, end, defaults)
        is_address = shows and self._is_source(start) and not self._is_of_image(start)
        if is_address and (address := self._markup.variables.first_in(self._text[start:end])):
            return self._replace(start, end, address)
        self._markup.copy(start)
        if shows and not self._text.endswith("<script", 0, start):
            self._markup.fill(end)
        else:
            self._markup.blank(end)
        return end

    def _replace(self, start: int, end: int, code: str) -> int:
        """Takes other code instead of an expression."""
        self._markup.copy(start)
        self._markup.insert(code, start)
        self._markup.skip(end)
        return end

    def _is_source(self, start: int) -> bool:
        """Returns whether the address of an element begins at a place."""
        return _IN_SOURCE.search(self._text, max(start - 20, 0), start) is not None

    def _is_of_image(self, start: int) -> bool:
        """Returns whether the element around a place is an image, rather than a script or a frame."""
        image, *others = (self._text.rfind(tag, max(start - 600, 0), start) for tag in ("<img", "<script", "<iframe"))
        return image > max(others)

    def _defaults(self, start: int, end: int) -> str:
        """Returns the consent defaults that an expression writes, as an object of JavaScript. Empty if it doesn't."""
        written = _JSON.search(self._text, start, end)
        if written is None:
            return ""
        at, until = start, end
        if (name := written["name"]) and name != "array":
            named = (it for it in _NAMED.finditer(self._text) if name in (it["variable"], it["function"]))
            at = next((it.end() for it in named), end)
            until = ends.start() if (ends := _END.search(self._text, at, at + _LONGEST_DEFAULTS)) else at
        found = _DEFAULT.findall(self._text, at, until)
        return "{" + ", ".join(f"'{setting}': '{value}'" for setting, value in found) + "}" if found else ""

    def _insert_script(self, start: int, end: int, address: str) -> int:
        return self._insert(start, end, f'<script src="{address}"></script>')

    def _insert(self, start: int, end: int, element: str) -> int:
        """Adds an element that a statement writes, inside of the statement."""
        self._markup.copy(start)
        self._markup.blank(end - 1)
        self._markup.insert(element, start)
        self._markup.blank(end)
        return end

    def _written(self, helper: re.Match[str]) -> str:
        """Returns the elements that a helper writes, as far as their addresses are known."""
        return scriptlets.elements_of(helper, self._markup.variables)

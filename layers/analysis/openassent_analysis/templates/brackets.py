"""Finds the ends of what is in brackets, and how far to search for an end."""

from __future__ import annotations

import re
from typing import Final

# The most characters between an opening delimiter and its end. Without an end this near, it is plain text.
NEAR: Final = 3_000
_MAX_NESTED: Final = 20
_BRACKETS: Final = re.compile(r"[()]")


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

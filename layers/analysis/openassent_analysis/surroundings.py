"""The lines around a finding, so that people see where the code is without opening the file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from openassent_analysis import secrecy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openassent_analysis.report import Match

_BEFORE_AND_AFTER: Final = 5
# Of a finding itself, at most this many lines.
_MOST_OWN: Final = 12
MOST_LINES: Final = 2 * _BEFORE_AND_AFTER + _MOST_OWN
LONGEST_LINE: Final = 160
# Where a long line is cut, this much of it is left before the finding.
_LEFT_OF_FINDING: Final = 40


def with_surroundings(matches: list[Match], text: str) -> list[Match]:
    """Returns a file's matches with the lines around them, with everything that looks like a secret masked."""
    if not matches:
        return matches
    # Of the whole file, because a secret can begin before the lines that are shown.
    lines = secrecy.masked_lines(text)
    return [replace(match, around=_around(match, lines)) for match in matches]


def _around(match: Match, lines: list[str]) -> list[str]:
    first = max(1, match.start_line - _BEFORE_AND_AFTER)
    last = min(match.end_line, match.start_line + _MOST_OWN - 1) + _BEFORE_AND_AFTER
    shown, indent = without_indent(lines[first - 1 : last])
    return [
        _cut(line, match.start_column - 1 - indent if number == match.start_line else 0)
        for number, line in enumerate(shown, first)
    ]


def without_indent(lines: Iterable[str]) -> tuple[list[str], int]:
    """Returns the lines without spaces at their ends and without common indentation, and its length."""
    kept = [line.rstrip() for line in lines]
    indent = min((len(line) - len(line.lstrip()) for line in kept if line), default=0)
    return [line[indent:] for line in kept], indent


def _cut(line: str, column: int) -> str:
    """Returns at most 160 characters of a line, with those at the column."""
    if len(line) <= LONGEST_LINE:
        return line
    begin = max(0, min(column - _LEFT_OF_FINDING, len(line) - LONGEST_LINE + 1))
    left = "…" if begin else ""
    end = begin + LONGEST_LINE - len(left) - 1
    return left + line[begin:end] + ("…" if end < len(line) else "")

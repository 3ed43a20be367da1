"""Splits code into lines of colored parts, for the short excerpts of findings.

It knows no language: it marks what looks alike in those that scans read (markup, JavaScript, Python, PHP, Ruby, CSS). A
part that it takes for something else only has another color. A library for this would be larger than the function.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_WORDS = """
and as async await break case catch class const continue def default defer del do elif else end except export extends
false finally for foreach from function if import in instanceof interface lambda let module new nil none not null or
pass public private require return self static super switch this throw true try type typeof undefined unless until use
var void while with yield False None True
"""
_KEYWORDS = frozenset(_WORDS.split())
# Each alternative ends at the first character that can't belong to it, so the time is linear in the text.
_TOKEN = re.compile(
    r"""
      (?P<comment> <!--(?:[^-]|-(?!->))*(?:-->)? | /\*(?:[^*]|\*(?!/))*(?:\*/)? | (?<![:\w])//[^\n]*
                   | (?<!\S)\#[ ][^\n]* )
    | (?P<string>  "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'? | `(?:[^`\\]|\\.)*`? )
    | (?P<tag>     </?[A-Za-z][\w:.-]* | /?> )
    | (?P<number>  \b\d[\w.]*\b )
    | (?P<word>    [A-Za-z_$][\w$]* )
    | (?P<rest>    [^"'`<>/\w$\#]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)


class Part(NamedTuple):
    """A part of a line. kind: `comment`, `string`, `tag`, `number`, `keyword`, or empty."""

    kind: str
    text: str


class Line(NamedTuple):
    """A line of code. number: None if it isn't known."""

    number: int | None
    parts: list[Part]


def highlight(code: str, first_line: int | None = None) -> list[Line]:
    """Returns the code's lines in order. first_line: the number of the first one in its file."""
    lines: list[list[Part]] = [[]]
    for kind, text in _tokens(code.replace("\r\n", "\n").rstrip("\n")):
        first, *others = text.split("\n")
        lines[-1].append(Part(kind, first))
        lines.extend([Part(kind, other)] for other in others)
    return [
        Line(None if first_line is None else first_line + offset, [part for part in parts if part.text])
        for offset, parts in enumerate(lines)
    ]


def _tokens(code: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(code):
        kind, text = match.lastgroup or "", match[0]
        if kind == "word":
            kind = "keyword" if text in _KEYWORDS else ""
        yield "" if kind == "rest" else kind, text

"""Reads templates whose own code is between delimiters, or in directives, inside of HTML.

Statements become blanks and expressions become names of the same length, so that HTML and scripts parse and keep their
offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from openassent_analysis.templates.braces import Braces
from openassent_analysis.templates.dialects import DIALECTS, Dialect, find_includes
from openassent_analysis.templates.directives import Directives
from openassent_analysis.templates.elements import Elements
from openassent_analysis.templates.markup import Markup

# By syntax: where it begins. A group's name is that of the method that reads it.
_OPENERS: Final = {
    "braces": r"(?P<braces>\{\{|\{%|\{#(?!if|each|await|key)|\{!!)",
    "scriptlets": r"(?P<percent><%)",
    "php": r"(?P<php><\?(?!xml))",
    "blade": r"(?P<blade>(?<![\w@.])@[a-zA-Z]++)",
    "razor": r"(?P<razor>(?<![\w@.])@(?:\*|[a-zA-Z_({])|[{}]|(?<![\w$.@])if\s*+(?=\())",
    "controls": r"(?P<razor2>(?<![\w@.])@(?:if|else)\b|[{}])",
    "tags": r"(?P<tags></?+(?:c:|s:|xsl:|sec:|cf|\#|@)[a-zA-Z-]++|<!---|<\#--)",
    "interpolation": r"(?P<interpolation>[\#$]!?+\{[^{}\n]{0,300}+\})",
    "single": r"(?P<single>\{(?=[*$/=]|(?:if|else|elseif|foreach|literal|include)\b))",
    "svelte": r"(?P<svelte>\{[\#:/](?:if|else|each|await|key)\b)",
    "astro": r"(?P<astro>(?i:<script\b|<style\b)|[{}]|:(?=\s*+\(?+\s*+(?:<|null|undefined)))",
    "expressions": r"(?P<expression_value>(?<==)\{)",
    "velocity": r"(?P<velocity>\#\{?+(?:if|elseif|else|end|foreach|macro)\b\}?+|\#\#|\#\*)",
    "lines": r"(?P<line>^[ \t]*+%(?!>)[^\n]*+)",
}


_BY_SYNTAXES: Final = {
    syntaxes: re.compile("|".join(written for name, written in _OPENERS.items() if name in syntaxes), re.MULTILINE)
    for syntaxes in {dialect.syntaxes for dialect in DIALECTS.values() if dialect.syntaxes}
}


def _read_frontmatter(markup: Markup) -> None:
    text = markup.text
    start = len(text) - len(text.lstrip())
    if not text.startswith("---", start):
        return
    end = text.find("\n---", start + 3)
    if end >= 0:
        markup.script(start + 3, end)
        markup.blank(end + 4)


class _Reader(Braces, Directives, Elements):
    """Reads every syntax."""


def read(markup: Markup, dialect: Dialect) -> None:
    """Reads the whole text."""
    find_includes(markup, dialect.kind)
    if "astro" in dialect.syntaxes:
        _read_frontmatter(markup)
    openers = _BY_SYNTAXES.get(dialect.syntaxes)
    if openers is None:
        return
    reader = _Reader(markup, dialect)
    at = markup.at
    while found := openers.search(markup.text, at):
        handler: Callable[[re.Match[str]], int | None] = getattr(reader, f"_{found.lastgroup}")
        end = handler(found)
        at = max(found.end() if end is None else end, found.start() + 1)

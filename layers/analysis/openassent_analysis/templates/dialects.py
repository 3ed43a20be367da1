"""The template languages: file extensions, and which syntaxes each of them has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from openassent_analysis.reading import resource


@dataclass(frozen=True, slots=True)
class Dialect:
    """kind: the language's name in the counts of analyzed files."""

    kind: str
    # Names of the syntaxes in `delimited`.
    syntaxes: frozenset[str] = frozenset()
    # The reader in `indented`, for languages that nest by indentation.
    indented: str = ""
    # True for code of which only the markup in strings is read.
    in_strings: bool = False


def _dialects() -> Iterator[tuple[str, Dialect]]:
    for kind, written in resource("template-languages")["languages"].items():
        syntaxes, indented = frozenset(written.get("syntaxes", ())), written.get("indented", "")
        dialect = Dialect(kind, syntaxes, indented, written.get("in_strings", False))
        yield from ((extension, dialect) for extension in written["extensions"])


# By file extension.
DIALECTS: Final = dict(_dialects())
# The language that a template writes, by the extension before its own. Others write pages.
_NO_PAGE: Final = re.compile(
    r"\.(?:md|mdx|markdown|txt|text|ya?ml|json|xml|rss|atom|css|scss|sass|less|sql|rb|py|go|java|cs|ex|exs|rs|sh|bash|conf|cfg|ini|toml|env"
    r"|service|properties|csv|ics|tf|rake|proto|kt|swift|c|h|cpp|dockerfile)\.\w+$"
)
_SCRIPT: Final = re.compile(r"\.(?P<language>[cm]?js|jsx|[cm]?ts)\.\w+$")


def language_of_template(name: str) -> str | None:
    """Returns the language that a template writes, or None if the file is no template or writes no pages."""
    lower = name.lower()
    if dialect_of(lower) is None or _NO_PAGE.search(lower):
        return None
    script = _SCRIPT.search(lower)
    if script is None or lower.endswith(".php"):
        return "html"
    return "typescript" if "ts" in script["language"] else "javascript"


def dialect_of(path: str) -> Dialect | None:
    name = path.rpartition("/")[2].lower()
    rest, _, extension = name.rpartition(".")
    if not rest:
        return None
    longer = f"{rest.rpartition('.')[2]}.{extension}"
    return DIALECTS.get(longer) or DIALECTS.get(extension)

"""The template languages: file extensions, which syntaxes each of them has, and how one template contains another."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from openassent_analysis.reading import pattern_of, resource
from openassent_analysis.templates.markup import MAX_INCLUDES, Markup


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


@lru_cache(500)
def dialect_of(path: str) -> Dialect | None:
    name = path.rpartition("/")[2].lower()
    rest, _, extension = name.rpartition(".")
    if not rest:
        return None
    longer = f"{rest.rpartition('.')[2]}.{extension}"
    return DIALECTS.get(longer) or DIALECTS.get(extension)


_NAME: Final = r"([\w./@:~-]{1,200}+)"
_BRACES: Final = re.compile(
    r"\{[%{][-~+]?+\s*+(?:renderFile\s*+\(?+[\"'](?:\./)?+|(?:(?:with|\$\w{1,40}\s{0,4}:?=)\s++)?+(?:partials\.Include(?:Cached)?+|include\w*+|extends|layout|render\w*+|embed"
    r"|partial\w*+|template|sections?|snippet|component|import|from)\b\s*+\(?+\s*+[\"']?+|\#?+>\s*+[\"']?+)" + _NAME
)
# <twig:Analytics />, and the lines of Liquid's statements.
_TWIG: Final = re.compile(r"<twig:" + _NAME)
_LIQUID: Final = re.compile(r"(?:^|\bliquid\b)[ \t]*+(?:render|include|section)\s++[\"']" + _NAME, re.MULTILINE)
_SCRIPTLETS: Final = re.compile(
    r"<%[-=@~]{0,2}+\s*+(?:await\s++)?+(?:include|render|partial|javascript_(?:include|pack)_tag|vite_(?:java|type)script_tag)\b"
    r"[^\"'%\n]{0,60}+[\"']?+" + _NAME
)
# Thymeleaf: th:replace="~{fragments/analytics :: tag}".
_INSERTED: Final = re.compile(r"\bth[:-](?:insert|replace|include)\s*+=\s*+[\"']~?+\{?+\s*+" + _NAME)
_BY_KIND: Final = {
    kind: pattern_of(written["includes"], re.MULTILINE)
    for kind, written in resource("template-languages")["languages"].items()
    if "includes" in written
}
_MARKS: Final = (
    "include", "extends", "layout", "insert", "replace", "<x-", "render", "partial", "template", "require", "embed",
    "import", "{>", "{ >", "section", "snippet", "component", "script_tag", "pack_tag",
    "<twig:", "{#>",
)  # fmt: skip


def _comments(text: str) -> Iterator[tuple[int, int]]:
    """Yields the ranges of the page's comments. Not of conditional ones, which some browsers read."""
    end = 0
    while (start := text.find("<!--", end)) >= 0 and (end := text.find("-->", start)) >= 0:
        if not text.startswith("[if", start + len("<!--")):
            yield start, end


def _is_inside(spans: list[tuple[int, int]], offset: int) -> bool:
    index = bisect_right(spans, (offset, offset)) - 1
    return index >= 0 and offset < spans[index][1]


def find_includes(markup: Markup, kind: str) -> None:
    text = markup.text
    lower = text.lower()
    if not any(mark in lower for mark in _MARKS):
        return
    patterns = [_BRACES, _SCRIPTLETS, _INSERTED] if kind not in _BY_KIND else [_BY_KIND[kind]]
    if kind in {"Smarty", "JSP"}:
        patterns += [_BRACES if kind == "Smarty" else _SCRIPTLETS]
    if kind == "Twig":
        patterns.append(_TWIG)
    if kind == "Liquid" and "liquid" in text:
        patterns.append(_LIQUID)
    comments = list(_comments(text))
    count = 0
    for pattern in patterns:
        for found in pattern.finditer(text):
            count += 1
            if count > MAX_INCLUDES:
                return
            if _is_inside(comments, found.start()):
                continue
            markup.include(next(filter(None, found.groups())), found.start())

"""Markdown and code as HTML: what the page's templates lean on. Nothing in the text can become a tag of its own."""

import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from scripts.reference.document import slug

_JSON = re.compile(
    r'(?P<name>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<literal>-?\d[\d.eE+-]*|\btrue\b|\bfalse\b|\bnull\b)'
)
_SHELL = re.compile(
    r"(?P<name>^(?:curl|export)\b)|(?P<literal>(?<= )-[A-Za-z]+\b)|(?P<text>'(?:[^']|'\\'')*'|\"[^\"]*\")", re.MULTILINE
)


def _highlight(pattern: re.Pattern[str], text: str) -> str:
    """Every match in a span that is named after its group's first letter, and all of it escaped."""
    found, position = [], 0
    for match in pattern.finditer(text):
        found.append(escape(text[position : match.start()], quote=False))
        found.append(f'<span class="{(match.lastgroup or "")[0]}">{escape(match[0], quote=False)}</span>')
        position = match.end()
    return "".join(found) + escape(text[position:], quote=False)


def code(text: str, language: str) -> Markup:
    """Highlighted code. Languages that are not known stay plain."""
    patterns = {"json": _JSON, "sh": _SHELL}
    inside = _highlight(patterns[language], text) if language in patterns else escape(text, quote=False)
    return Markup(inside)  # nosec B704  # noqa: S704 (escaped above)


class Prose:
    """Renders Markdown. `operations` turns the name of an operation, `GET /v1/me`, into a link to it."""

    def __init__(self, operations: dict[str, str]) -> None:
        self._operations = operations
        self._markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
        for name, rule in (
            ("code_inline", self._code_inline),
            ("fence", self._fence),
            ("heading_open", self._heading_open),
            ("table_open", self._table_open),
            ("th_open", lambda *_: "<th>"),
            ("td_open", self._cell_open),
            ("td_close", lambda *_: "</div></td>\n"),
        ):
            self._markdown.add_render_rule(name, rule)
        self._columns: list[str] = []
        self._column = 0

    def blocks(self, text: str) -> Markup:
        rendered = self._markdown.render(text).strip()
        return Markup(rendered)  # nosec B704  # noqa: S704 (no HTML gets through)

    def line(self, text: str) -> Markup:
        rendered = self._markdown.renderInline(text.replace("\n", " ")).strip()
        return Markup(rendered)  # nosec B704  # noqa: S704 (no HTML gets through)

    def headings(self, text: str) -> list[str]:
        """The headings of the second level."""
        tokens = self._markdown.parse(text)
        return [after.content for one, after in pairwise(tokens) if one.type == "heading_open" and one.tag == "h2"]

    def _code_inline(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        content = tokens[index].content
        shown = f"<code>{escape(content, quote=False)}</code>"
        anchor = self._operations.get(content)
        kinds = [token.type for token in tokens[:index]]
        in_link = kinds.count("link_open") > kinds.count("link_close")
        return f'<a href="#{anchor}">{shown}</a>' if anchor and not in_link else shown

    def _fence(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        token = tokens[index]
        return f'<div class="code"><pre><code>{code(token.content.rstrip(), token.info.strip())}</code></pre></div>\n'

    def _heading_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return f'<{tokens[index].tag} id="{slug(tokens[index + 1].content)}">'

    def _table_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        """Rows become blocks on a narrow screen: each cell brings its column's heading, and its role."""
        heads = []
        for one, after in pairwise(tokens[index:]):
            if one.type == "thead_close":
                break
            if one.type == "th_open":
                heads.append(after.content.replace("`", ""))
        self._columns, self._column = heads, 0
        return "<table>"

    def _cell_open(self, *_: Any) -> str:
        head = self._columns[self._column % len(self._columns)]
        self._column += 1
        return f'<td data-label="{escape(head)}"><div>'

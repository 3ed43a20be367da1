"""Reads the comments that ask to ignore findings: `assent-ignore: RULE, RULE -- reason`.

Such a comment is at the end of the line that it is about, or on lines of its own before it. Strings and visible text
with the same words have no effect: where a tree tells comments from them, it decides. What a template's reader has
removed from the page is a comment or code of the template.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ast_grep_py import Config

from openassent_analysis.report import MAX_IGNORES, MAX_REASON, Ignore
from openassent_analysis.sources import Source

_WORD: Final = "assent-ignore:"
_DIRECTIVE: Final = re.compile(r"assent-ignore:([^\n]{0,1000})")
# What is before the words, from the beginning of a comment, or of a line of it. The first group is code before that.
_LINE_COMMENT: Final = re.compile(r"([^\n]{0,200}?)(?:/+-?|(?<!\{)#+)[ \t]*+$")
_BLOCK_COMMENT: Final = re.compile(
    r"([^\n]{0,200}?)(?:<#?!?-{2,3}|/\*{1,2}!?|\{#-?|\{\{!(?:--)?|\{\{--|@\*|#\*|\{\*|<%(?:#|--|!--)|<%-?[ \t]*+#"
    r"|\{%-?[ \t]*+(?:comment[ \t]*+-?%\}|#)|^[ \t]*+\*?)[ \t]*+$"
)
_END: Final = re.compile(r"--!?>|\*/|-?#\}|--\}\}|\}\}|\*\}|\*@|\*#|--%>|%>|\?>|-?%\}|\{%-?[ \t]{0,20}endcomment")
# Around a comment on a line of its own: the brackets of one of JSX, and of code in a template.
_NO_CODE: Final = re.compile(r"[ \t{(-]*+(?:<%-?+|<\?(?:php)?+)?+[ \t]*+")
_NO_CODE_AFTER: Final = re.compile(r"[ \t})/-]*+(?:%>|\?>|%\}|\{%-?+[ \t]*+endcomment[ \t]*+-?+%\})?+[ \t})]*+\r?+")
_COMMENT_LINE: Final = re.compile(
    r"[ \t{]*+(?:$|//|/\*|\*|#(?![\w!\[])|-#|<!--|-->|\{#|\{!|--\}|\{--|/\*|@\*|<%#|<%--|\{?%-?[ \t]*+(?:end)?comment\b"
    r"|(?:\?>|%>|<\?(?:php)?)[ \t]*+$)"
)
_COMMENTS: Final[Config] = {"rule": {"kind": "comment", "regex": _WORD}}
_MAX_LINES: Final = 20
_MAX_NAME: Final = 60


def ignores_in(source: Source) -> list[Ignore]:
    """Returns what the file's comments ask to ignore, one entry for each rule."""
    if _WORD not in source.original:
        return []
    comments = _comments(source)
    shown = {_origin(source, it.start()): it.start() for it in _DIRECTIVE.finditer(source.text)}
    found: list[Ignore] = []
    for directive in islice(_DIRECTIVE.finditer(source.original), MAX_IGNORES):
        at = shown.get(directive.start())
        if at is None or comments is None or _is_inside(comments, at):
            found += _ignores(source, directive)
    return found[:MAX_IGNORES]


def _origin(source: Source, offset: int) -> int:
    return source.template.origin(offset) if source.template else offset


def _comments(source: Source) -> list[tuple[int, int]] | None:
    """Returns the ranges of comments with the words in all trees, or None if the language has none."""
    if source.language == "configuration":
        return None
    return sorted(
        (block.start + node.range().start.index, block.start + node.range().end.index)
        for block in source.blocks
        # Finding a node's position takes time in proportion to it.
        for node in islice(block.root.find_all(_COMMENTS), MAX_IGNORES)
    )


def _is_inside(ranges: list[tuple[int, int]], offset: int) -> bool:
    index = bisect_right(ranges, (offset, offset)) - 1
    return index >= 0 and offset < ranges[index][1]


def _ignores(source: Source, directive: re.Match[str]) -> Iterator[Ignore]:
    start = directive.start()
    line = source.line_at(start)
    before = source.original[max(source.line_start(line), start - 200) : start]
    block = _BLOCK_COMMENT.fullmatch(before)
    opening = block or _LINE_COMMENT.fullmatch(before)
    if opening is None or (source.language == "configuration" and not before.rstrip().endswith("#")):
        return
    text = directive[1]
    end = _END.search(text) if block else None
    after = text[end.end() :] if end else ""
    written = text[: end.start()] if end else text
    is_alone = _NO_CODE.fullmatch(opening[1]) is not None and _NO_CODE_AFTER.fullmatch(after) is not None
    last = _next_line(source, line, is_open=block is not None and end is None) if is_alone else line
    names, _, reason = written.partition("--")
    reason = "".join(filter(str.isprintable, reason)).strip()[:MAX_REASON]
    for name in names.split(","):
        yield Ignore(line, last, "".join(filter(str.isprintable, name)).strip()[:_MAX_NAME], reason)


def _next_line(source: Source, line: int, *, is_open: bool) -> int:
    """Returns the next line that isn't a comment. is_open: the comment ends on a later line."""
    following = [(it, _line(source, it)) for it in range(line + 1, line + 1 + _MAX_LINES)]
    if is_open:
        ends = next((it for it, text in following if _END.search(text)), line)
        following = [(it, text) for it, text in following if it > ends]
    return next((it for it, text in following if not _COMMENT_LINE.match(text)), line)


def _line(source: Source, line: int) -> str:
    return source.original[source.line_start(line) : source.line_start(line + 1)].rstrip("\r\n")[:1_000]

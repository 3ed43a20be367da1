"""Reads code of a server's language as a template: only the script and frame elements that its strings write."""

from __future__ import annotations

import re
from typing import Final

from scan_execution.analysis.templates.markup import Markup
from scan_execution.analysis.templates.scriptlets import HELPER, element_of

_ELEMENT: Final = re.compile(rf"<(?P<name>script|iframe)\b[^<>]{{0,1000}}+>?|{HELPER.pattern}", re.IGNORECASE)
_END: Final = re.compile(r"</script\s{0,9}>?", re.IGNORECASE)
_COMMENT: Final = re.compile(r"\s*(?:#|//|/?\*|--|@)")
_ESCAPE: Final = re.compile(r"\\(?=[\"'/])")
_LONGEST_SCRIPT: Final = 5_000
_LONGEST_LINE: Final = 500


def read(markup: Markup) -> None:
    """Blanks everything but elements that are no part of a comment."""
    text = markup.text
    at = 0
    while element := _ELEMENT.search(text, at):
        start, at = element.span()
        line = text.rfind("\n", max(0, start - _LONGEST_LINE), start) + 1
        if _COMMENT.match(text, line, start):
            continue
        if element["name"] is None:
            markup.blank(at)
            markup.insert(element_of(element), start)
            continue
        if element["name"].lower() == "script" and (end := _END.search(text, at, at + _LONGEST_SCRIPT)):
            at = end.end()
        markup.blank(start)
        for escape in _ESCAPE.finditer(text, start, at):
            markup.copy(escape.start())
            markup.blank(escape.end())
        markup.copy(at)
    markup.blank(len(text))

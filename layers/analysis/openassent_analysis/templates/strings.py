"""Reads code of a server's language as a template: only the script and frame elements that its strings write."""

from __future__ import annotations

import re
from typing import Final

from openassent_analysis.templates.markup import Markup
from openassent_analysis.templates.scriptlets import HELPER, element_of

_ELEMENT: Final = re.compile(rf"<(?P<name>script|iframe)\b[^<>]{{0,1000}}+>?|{HELPER.pattern}", re.IGNORECASE)
_END: Final = re.compile(r"</script\s{0,9}>?", re.IGNORECASE)
_COMMENT: Final = re.compile(r"\s*(?:#(?!\{)|//|/?\*|--|@(?:[a-z]{0,9}doc|example|see|spec|param|returns?)\b)")
_ESCAPE: Final = re.compile(r"\\(?=[\"'/])")
# Code that joins two strings: `" + name + "` or `" . $name . "`. Its value isn't known.
_JOINED: Final = re.compile(
    r"""(?<!\\)(["'`])\s{0,200}(?:\+|\.|&|~|<>)(?:[^"'`;{}<>]{1,200}?(?:\+|\.|&|~|<>))?\s{0,200}\1"""
)
# Lower-case words of which one is in every text with an element.
_MARKS: Final = ("<script", "iframe", "javascript_include_tag", "js(")
_LONGEST_SCRIPT: Final = 5_000
_LONGEST_LINE: Final = 500


def read(markup: Markup) -> None:
    """Blanks everything but elements that are no part of a comment."""
    text = markup.text
    lower = text.lower()
    if not any(mark in lower for mark in _MARKS):
        markup.skip(len(text))
        return
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
        for joined in _JOINED.finditer(text, start, element.end()):
            _copy(markup, joined.start())
            markup.fill(joined.end())
        _copy(markup, at)
    markup.blank(len(text))


def _copy(markup: Markup, until: int) -> None:
    """Takes text of a string, without the marks that escape quotes."""
    for escape in _ESCAPE.finditer(markup.text, markup.at, until):
        markup.copy(escape.start())
        markup.blank(escape.end())
    markup.copy(until)

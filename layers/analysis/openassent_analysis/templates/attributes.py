"""Reads the conditions that templates have in attributes of elements: Vue, Angular, Alpine, Thymeleaf, and others."""

from __future__ import annotations

import re
from typing import Final

from openassent_analysis.templates.markup import Markup, Test

_NAMES: Final = (
    r"(?:v-if|v-else-if|v-else|(?:data-)?th[:-](?:if|unless)|\*ngIf|(?:data-)?ng-if|x-if|:if|n:if|py:if|data-sly-test)"
)
_ANY: Final = re.compile(rf"\s{_NAMES}\b")
# Each name contains one of these. Looking for them first is much faster than searching for the names.
_MARKS: Final = ("-if", ":if", "*ngIf", "-else", "-unless", ":unless", "-sly-test")
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][\w:.-]*+)((?:[^<>\"']|\"[^\"]{0,500}+\"|'[^']{0,500}+'){0,800}+)>")
_CONDITION: Final = re.compile(
    rf"""(?<!\S)({_NAMES})(?:\s*+=\s*+(?:"([^"]{{0,500}}+)"|'([^']{{0,500}}+)'|\{{([^}}]{{0,300}}+)\}}))?"""
)
_VOID: Final = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip
_MAX_OPEN: Final = 500


def read_attributes(markup: Markup) -> None:
    text = markup.text
    if not any(mark in text for mark in _MARKS) or not _ANY.search(text):
        return
    # Open elements: name, offset, and tests.
    opened: list[tuple[str, int, list[Test]]] = []
    chain: list[Test] = []
    for tag in _TAG.finditer(text):
        closing, name, rest = tag.groups()
        if closing:
            index = next(
                (at for at in range(len(opened) - 1, max(len(opened) - 50, -1), -1) if opened[at][0] == name), -1
            )
            if index >= 0:
                chain = _close(markup, opened[index], tag.end())
                del opened[index:]
            continue
        tests, chain = _tests(rest, chain)
        if rest.endswith("/") or name.lower() in _VOID:
            chain = _close(markup, (name, tag.start(), tests), tag.end())
        else:
            if len(opened) >= _MAX_OPEN:
                del opened[0]
            opened.append((name, tag.start(), tests))
            chain = []


def _tests(rest: str, chain: list[Test]) -> tuple[list[Test], list[Test]]:
    """Returns the tests of an element: its own, and those of the elements that it is an alternative to."""
    found = _CONDITION.search(rest)
    if not found:
        return [], []
    name, text = found[1], next(filter(None, found.groups()[1:]), "")
    if name.startswith("v-else"):
        before = [Test(test.text, not test.holds) for test in chain[-1:]] + chain[:-1]
        return [*before, *([Test(text, True)] if text else [])], []
    return [Test(text, "unless" not in name)], []


def _close(markup: Markup, element: tuple[str, int, list[Test]], end: int) -> list[Test]:
    _, start, tests = element
    if tests:
        markup.condition(start, end, *tests)
    return tests

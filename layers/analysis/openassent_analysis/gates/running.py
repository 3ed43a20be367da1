"""Decides whether code runs by itself when a page loads."""

from __future__ import annotations

import re
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.functions import FUNCTIONS
from openassent_analysis.gates.callers import name_of
from openassent_analysis.gates.index import MAX_ANCESTORS

_RUNS_ITSELF: Final = re.compile(
    r"(?:use(?:Layout|Insertion)?Effect|onMounted|onMount|mounted|setTimeout|requestIdleCallback|queueMicrotask"
    r"|requestAnimationFrame|\.ready|^\$|^jQuery|\.then)$"
)
_LOADED: Final = re.compile(r"""["'](?:load|DOMContentLoaded|readystatechange)["']""")


def runs_on_load(node: SgNode) -> bool:
    """Returns whether code runs on page load: outside of functions, or in one that the page itself calls."""
    outermost_runs = False
    for ancestor in node.ancestors()[:MAX_ANCESTORS]:
        if ancestor.kind() not in FUNCTIONS:
            continue
        if _called_by_page(ancestor):
            outermost_runs = True
            continue
        name = name_of(ancestor)[0]
        # Effects of a component run when it is rendered.
        return outermost_runs and bool(name and name[:1].isupper())
    return True


def _called_by_page(function: SgNode) -> bool:
    parent = function.parent()
    while parent is not None and parent.kind() in {"parenthesized_expression", "arguments"}:
        parent = parent.parent()
    if parent is None:
        return False
    if parent.kind() == "assignment_expression":
        left = parent.field("left")
        return left is not None and left.text().endswith("onload")
    if parent.kind() in {"unary_expression", "member_expression"}:
        return True  # !function () {}(), (function () {}).call(this)
    if parent.kind() != "call_expression":
        return False
    callee = parent.field("function")
    if callee is None:
        return False
    inside = callee.range().start.index <= function.range().start.index < callee.range().end.index
    if inside or _RUNS_ITSELF.search(callee.text()):
        return True
    return callee.text().endswith("addEventListener") and bool(_LOADED.search(parent.text()[:200]))

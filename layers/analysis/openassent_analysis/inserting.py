"""Finds a script's own functions that add a script or a frame to the page, by the use of their parameters."""

from __future__ import annotations

from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.functions import FUNCTIONS
from openassent_analysis.reading import resource

_SOURCES: Final = resource("queries")["set_sources"]
_NAMED: Final = frozenset({
    "variable_declarator", "pair", "assignment_expression", "public_field_definition", "field_definition",
})  # fmt: skip
_PARAMETERS: Final = resource("queries")["parameters"]
_ELEMENTS: Final = ("script", "iframe")
_MAX_PLACES: Final = 40
_MAX_ANCESTORS: Final = 60
_MAX_WRAPPERS: Final = 4
_LONGEST: Final = 400


def inserters_of(root: SgNode) -> dict[str, SgNode]:
    """Returns the functions that add an element whose address is a parameter, by name, with the place that does it."""
    found: dict[str, SgNode] = {}
    for place in root.find_all(_SOURCES)[:_MAX_PLACES]:
        value = place.field("right") or place.field("arguments")
        used = {it.text() for it in value.find_all({"rule": {"kind": "identifier"}})[:8]} if value else set()
        for function in place.ancestors()[:_MAX_ANCESTORS] if used else ():
            if function.kind() not in FUNCTIONS or used.isdisjoint(_parameters(function)):
                continue
            if (name := _name(function)) and any(element in function.text() for element in _ELEMENTS):
                found.setdefault(name, place)
            break
    return found


def _parameters(function: SgNode) -> set[str]:
    only, several = function.field("parameter"), function.field("parameters")
    if only is not None:
        return {only.text()[:_LONGEST]}
    return {name.text() for name in several.find_all(_PARAMETERS)[:20]} if several is not None else set()


def _name(function: SgNode) -> str | None:
    name = function.field("name")
    around = function.parent()
    for _ in range(_MAX_WRAPPERS):  # const add = useCallback((src) => ...)
        if name is not None or around is None:
            break
        if around.kind() in _NAMED:
            name = around.field("name") or around.field("key") or around.field("left") or around.field("property")
        around = around.parent()
    return name.text()[:_LONGEST].rpartition(".")[2].strip("\"'") if name is not None else None

"""Finds the exports that give the visitor's choice: functions, hooks, stores, values, and components that wait."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ast_grep_py import Config, SgNode

from openassent_analysis.blocks import SCRIPTS, Block
from openassent_analysis.gates import markup, words
from openassent_analysis.gates.context import NEVER, NOTHING, Implied, Reader, either_of
from openassent_analysis.gates.index import Declared, Place, arguments_of, returns_of
from openassent_analysis.gates.origins import declared_as
from openassent_analysis.gating import DEFAULT, Provider
from openassent_analysis.reading import resource
from openassent_analysis.statements import FUNCTIONS

_STORES: Final = frozenset(
    {"create", "createStore", "defineStore", "persist", "persisted", "persistentAtom", "atomWithStorage", "createSlice"}
)
_MAX_PROPERTIES: Final = 50
_MAX_FUNCTION: Final = 2_000
_READS: Final = re.compile(r"document\.cookie(?!\s{0,9}=[^=])|getItem\(|[cC]ookies?\.get\(")
_CONSTANT: Final = re.compile(r"(?<![\w$.\"'`])[A-Z][A-Z0-9_]{2,60}(?![\w$])")
_DEFAULTS: Final[Config] = {"rule": {"kind": "export_statement", "regex": r"^export\s+default\b"}}
_JSX: Final = frozenset({"jsx_element", "jsx_self_closing_element", "jsx_fragment"})
_ASSIGNED: Final = resource("queries")["assigned_exports"]


def providers_in(reader: Reader) -> Iterator[Provider]:
    for name, place in _exported(reader):
        for method, implied in _methods_of(reader, place):
            yield from _as_provider(f"{name}.{method}", implied)
        implied = _implied_by_value(reader, place, 0)
        if implied == NOTHING and place.node.kind() in {"call_expression", "new_expression"}:
            implied = _implied_by_state(reader, place)
        yield from _as_provider(name, implied)


def _as_provider(name: str, implied: Implied) -> Iterator[Provider]:
    if implied.given:
        yield Provider(name, None)
    else:
        yield from (Provider(name, source) for source in sorted(implied.providers))


def _methods_of(reader: Reader, place: Place) -> Iterator[tuple[str, Implied]]:
    """Yields the methods of a class, with the gate implied by their results."""
    body = place.node.field("body") if place.node.kind() == "class_declaration" else None
    for method in body.children()[:_MAX_PROPERTIES] if body is not None else ():
        name = method.field("name") if method.kind() == "method_definition" else None
        if name is not None:
            yield name.text(), _choice(reader, place.block, method)


def _implied_by_state(reader: Reader, place: Place) -> Implied:
    """Returns the gate implied by an exported state that is true, by the places that set it."""
    declarator = place.node.parent()
    name = declarator.field("name") if declarator is not None else None
    if declarator is None or name is None or name.kind() != "identifier":
        return NOTHING
    return declared_as(reader, Declared(place.block, declarator, place.node), name.text()).true


def _exported(reader: Reader) -> Iterator[tuple[str, Place]]:
    """Yields the name and the value of each export."""
    index = reader.index
    for local, name in index.exports.items():
        for declared in index.declarations.get(local, ())[:1]:
            yield name, Place(declared.block, declared.value if declared.value is not None else declared.node)
    for block in index.scripts:
        if block.language in SCRIPTS and "export" in block.text:
            for name, value in _exported_in_place(block):
                yield name, Place(block, value)


def _exported_in_place(block: Block) -> Iterator[tuple[str, SgNode]]:
    """Yields the exports that have no name in the file."""
    for statement in block.root.find_all(_DEFAULTS):
        value = statement.field("value") or statement.field("declaration")
        if value is not None and value.kind() != "identifier":
            yield DEFAULT, value
    for assignment in block.root.find_all(_ASSIGNED):
        left, right = assignment.field("left"), assignment.field("right")
        if left is None or right is None:
            continue
        if right.kind() in FUNCTIONS:
            name = left.text().rpartition(".")[2]
            yield DEFAULT if name == "exports" else name, right
        yield from _properties(right)


def _implied_by_value(reader: Reader, place: Place, depth: int) -> Implied:
    """Returns the gate implied by an export that is true, renders its children, or calls its parameter."""
    block, node = place
    if depth > 3:
        return NOTHING
    kind = node.kind()
    if kind in FUNCTIONS:
        return _implied_by_function(reader, place, depth)
    if kind == "object":
        return _first(_implied_by_value(reader, Place(block, value), depth + 1) for _, value in _properties(node))
    if kind in {"class_declaration", "class"}:
        body = node.field("body")
        methods = [it for it in body.children() if it.kind() == "method_definition"] if body is not None else []
        return _first(_choice(reader, block, method) for method in methods[:_MAX_PROPERTIES])
    implied = _choice(reader, block, node)
    if kind in {"call_expression", "new_expression"} and not implied.given and not implied.providers:
        callee = node.field("function") or node.field("constructor")
        name = callee.text()[-60:].rpartition(".")[2] if callee is not None else ""
        if kind == "new_expression" and (declared := reader.index.declarations.get(name)):
            value = declared[0].value
            if value is not None and value.kind() == "class_declaration":
                return _implied_by_value(reader, Place(declared[0].block, value), depth + 1)
        if name.partition("<")[0] in _STORES and words.is_key(node.text()[:2000]):
            return Implied(given=True)
        return _first(
            _implied_by_value(reader, Place(block, it), depth + 1)
            for it in arguments_of(node)
            if it.kind() in FUNCTIONS
        )
    return implied


def _choice(reader: Reader, block: Block, node: SgNode) -> Implied:
    """Returns the gate implied by a true value. A constant isn't the visitor's choice."""
    meaning = reader.meaning(block, node)
    return NOTHING if meaning == NEVER else meaning.true


def _implied_by_function(reader: Reader, place: Place, depth: int) -> Implied:
    block, function = place
    implied = _choice(reader, block, function)
    if implied.given or implied.providers:
        return implied
    returned = returns_of(function)
    is_component = any(_shown(value).kind() in _JSX for value in returned)
    if not is_component and _looks_for_key(reader, function):
        return Implied(given=True)
    shown = markup.children_of(reader, block, function)
    if shown.given or shown.providers:
        return shown
    objects = [value for value in returned if value.kind() in {"object", "array"}]
    found = _first(_implied_by_value(reader, Place(block, value), depth + 1) for value in objects)
    return found if found != NOTHING else _implied_by_parameters(reader, place)


def _shown(value: SgNode) -> SgNode:
    """Returns what an expression in parentheses contains."""
    return value.child(1) or value if value.kind() == "parenthesized_expression" else value


def _looks_for_key(reader: Reader, function: SgNode) -> bool:
    """Returns whether a function's result depends on a value that is stored under a key of consent."""
    text = function.text()[:_MAX_FUNCTION]
    if "return" not in text or _READS.search(text) is None or words.asks(text[:100]) or words.refuses(text[:100]):
        return False
    names = dict.fromkeys(_CONSTANT.findall(text))
    return any(words.is_key(reader.index.strings.get(name, "")) for name in list(names)[:_MAX_PROPERTIES])


def _implied_by_parameters(reader: Reader, place: Place) -> Implied:
    """Returns the gate under which a function calls one of its parameters."""
    block, function = place
    ways = []
    for name in sorted(reader.index.parameters(function))[:10]:
        for use in reader.index.uses_in(block, function, name, 40):
            parent = use.parent()
            called = parent is not None and parent.kind() == "call_expression" and parent.field("function") == use
            given = parent is not None and parent.kind() == "arguments"
            if called or given:
                implied = reader.found(block, use, function).implied
                ways += [implied] if called or implied != NOTHING else []
    return either_of(ways) or NOTHING


def _first(implied: Iterator[Implied]) -> Implied:
    """Returns the first that gives the choice, itself or through others."""
    through = NOTHING
    for one in implied:
        if one.given:
            return one
        if one.providers and not through.providers:
            through = one
    return through


def _properties(node: SgNode) -> Iterator[tuple[str, SgNode]]:
    if node.kind() not in {"object", "array"}:
        return
    for part in node.children()[: 2 * _MAX_PROPERTIES]:
        if part.kind() == "pair":
            key, value = part.field("key"), part.field("value")
            if key is not None and value is not None:
                yield key.text().strip("\"'"), value
        elif part.kind() == "method_definition" and (name := part.field("name")):
            yield name.text(), part
        elif part.kind() == "shorthand_property_identifier" or (node.kind() == "array" and part.is_named()):
            yield part.text()[:100], part

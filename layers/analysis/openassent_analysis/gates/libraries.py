"""Decides the meaning of a consent library's calls and properties, by what its documentation says of them."""

from __future__ import annotations

import re
from functools import reduce
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.gates import words
from openassent_analysis.gates.context import FLAG, STORED, Meaning, Reader, conjunction, disjunction, negated
from openassent_analysis.gates.index import arguments_of
from openassent_analysis.gating import DEFAULT, WHOLE
from openassent_analysis.reading import pattern_of, resource

_API: Final = resource("consent-api")
_ANSWERED: Final = frozenset(name for names in _API["answered"].values() for name in names)
_NECESSARY: Final = pattern_of(_API["necessary"], re.IGNORECASE)
_FUNCTIONAL: Final = frozenset(_API["functional_is_necessary"])
_CONDITIONS: Final = frozenset(_API["conditions"])
_BEFORE: Final = frozenset(_API["before"])
_NEVER_WAITS: Final = re.compile(rf"[\"']?(?:{'|'.join(_API['never_waits'])})[\"']?\s{{0,9}}:\s{{0,9}}true\b")
_SCRIPTS: Final = tuple(_API["scripts"])
_CALLS: Final = frozenset({"call_expression", "new_expression"})
# The part of an expression that its value comes from.
_INNER: Final = {"member_expression": "object", "subscript_expression": "object", "call_expression": "function"}
_WRAPPERS: Final = frozenset({"await_expression", "parenthesized_expression", "non_null_expression"})
_MAX_STEPS: Final = 20
_MAX_DEPTH: Final = 6
_MAX_NAME: Final = 200


def without_answers(reader: Reader, node: SgNode, found: Meaning) -> Meaning:
    """Returns the meaning of a name, property, or call, by what a library's documentation says of it.

    STORED, from which nothing follows, if it is true without consent: after a refusal, or for necessary cookies.
    """
    if not found.true.given and not found.true.providers:
        return found
    callee = (node.field("function") or node.field("constructor") or node) if node.kind() in _CALLS else node
    given = arguments_of(node) if callee != node else []
    name = _last(callee)
    if given and given[0].kind() == "string" and _is_necessary(given[0].text()[1:-1], name):
        return STORED
    if callee == node and node.kind() != "identifier":
        return STORED if _NECESSARY.fullmatch(name) or _says_answered(reader, node, name) else found
    if given and (_name_of(reader, callee) or name) in _CONDITIONS and is_of_library(reader, callee):
        return meaning_of_condition(given[0])
    name = _name_of(reader, callee) or name
    answered = name in _ANSWERED or (callee != node and not given and f"{name}()" in _ANSWERED)
    return STORED if answered and is_of_library(reader, callee) else found


def _says_answered(reader: Reader, node: SgNode, name: str) -> bool:
    return name in _ANSWERED and is_of_library(reader, node)


def _is_necessary(category: str, function: str) -> bool:
    return bool(_NECESSARY.fullmatch(category)) or (category == "functional" and function in _FUNCTIONAL)


def _last(path: SgNode) -> str:
    """Returns the last name of a path: of an object's property, or of an element whose key is written out."""
    key = path.field("property") or path.field("index") or path
    return key.text()[-_MAX_NAME:].strip("\"'`")


def _name_of(reader: Reader, node: SgNode) -> str:
    """Returns the name that a library gives to what the file has under another one, or an empty string."""
    if node.kind() != "identifier":
        return ""
    if declared := reader.index.declarations.get(node.text()):
        return declared[0].part
    export = reader.index.imports.get(node.text())
    return export.name if export is not None and export.name not in {WHOLE, DEFAULT} else ""


def is_of_library(reader: Reader, node: SgNode, depth: int = 0) -> bool:
    """Returns whether a value comes from a consent library: from its package, or from its object in the page."""
    for _ in range(_MAX_STEPS):
        if node.kind() not in _INNER and node.kind() not in _WRAPPERS:
            break
        if words.LIBRARY.match(node.text()[:_MAX_NAME]) and node.text().startswith(("window.", "globalThis.", "self.")):
            return True
        inner = node.field(_INNER[node.kind()]) if node.kind() in _INNER else node.child(1)
        if inner is None:
            return False
        node = inner
    name = node.text()[:_MAX_NAME]
    if node.kind() != "identifier" or depth >= _MAX_DEPTH or reader.index.parameter(node, name) is not None:
        return False
    if export := reader.index.imports.get(name):
        return bool(words.PACKAGE.fullmatch(export.module))
    if declared := reader.index.declarations.get(name):
        value = declared[0].value
        return value is not None and is_of_library(reader, value, depth + 1)
    return bool(words.LIBRARY.match(name))


def meaning_of_condition(condition: SgNode, depth: int = 0) -> Meaning:
    """Returns the meaning of a condition of categories: `'measurement'`, or `{and: ['measurement', {not: …}]}`."""
    if condition.kind() == "string":
        return STORED if _NECESSARY.fullmatch(condition.text()[1:-1]) else FLAG
    pair = next((it for it in condition.children() if it.kind() == "pair"), None)
    key, value = (pair.field("key"), pair.field("value")) if pair is not None else (None, None)
    if condition.kind() != "object" or key is None or value is None or depth >= _MAX_DEPTH:
        return FLAG
    parts = [it for it in value.children() if it.is_named()] if value.kind() == "array" else [value]
    meanings = [meaning_of_condition(it, depth + 1) for it in parts]
    operator = key.text().strip("\"'")
    if not meanings or operator not in {"and", "or", "not"}:
        return FLAG
    if operator == "not":
        return negated(meanings[0])
    return reduce(conjunction if operator == "and" else disjunction, meanings)


def never_waits(properties: SgNode) -> bool:
    """Returns whether a library loads the script that an object describes without waiting for its category."""
    return any(it.kind() == "pair" and _NEVER_WAITS.match(it.text()[:_MAX_NAME]) for it in properties.children())


def loads_by_itself(reader: Reader, call: SgNode) -> bool:
    """Returns whether a call describes a script that a library loads once the visitor agrees: `metaPixel({…})`."""
    callee = call.field("function") if call.kind() == "call_expression" else None
    export = reader.index.imports.get(callee.text()[:_MAX_NAME]) if callee is not None else None
    if export is None or not export.module.startswith(_SCRIPTS):
        return False
    around = call.ancestors()[:2]
    spread = len(around) == 2 and around[0].kind() == "spread_element"  # {...metaPixel({…}), alwaysLoad: true}
    return not (spread and never_waits(around[1]))


def runs_before_answer(handler: str) -> bool:
    """Returns whether a library's handler runs before the visitor answers, or whatever the answer is."""
    return handler in _BEFORE

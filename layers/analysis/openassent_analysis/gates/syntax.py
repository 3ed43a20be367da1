"""Parts of calls, functions, and literals, as the conditions need them."""

from __future__ import annotations

from typing import Final

from ast_grep_py import Config, SgNode

from openassent_analysis.functions import FUNCTIONS
from openassent_analysis.gates.index import Index

MAX_TEXT: Final = 400
_MAX_RETURNS: Final = 20
_RETURNS: Final[Config] = {"rule": {"kind": "return_statement"}}
_CONSTANTS: Final = frozenset({"string", "number", "true", "false", "null", "undefined"})


def arguments_of(call: SgNode) -> list[SgNode]:
    given = call.field("arguments")
    return [child for child in given.children() if child.is_named() and child.kind() != "comment"] if given else []


def callee_of(call: SgNode) -> str:
    callee = call.field("function") or call.field("constructor")
    return callee.text()[-MAX_TEXT:] if callee is not None else ""


def is_constant(node: SgNode) -> bool:
    return node.kind() in _CONSTANTS


def constant_of(index: Index, node: SgNode) -> str:
    """Returns the value of a literal, of a name that the file sets to one, or the last word of another name."""
    if node.kind() == "identifier":
        for declared in index.declarations.get(node.text(), ())[:1]:
            if declared.value is not None and is_constant(declared.value):
                return declared.value.text().strip("\"'")
    text = node.text()[:MAX_TEXT]
    if node.kind() == "member_expression" and (value := index.strings.get(text.rpartition(".")[2])):
        return value
    return text.strip("\"'`") if node.kind() in {"string", "template_string"} else text.rpartition(".")[2]


def returns_of(function: SgNode) -> list[SgNode]:
    body = function.field("body")
    if body is not None and body.kind() != "statement_block":
        inner = body.child(1) if body.kind() == "parenthesized_expression" else body
        return [inner] if inner is not None else []
    found = []
    for statement in function.find_all(_RETURNS):
        around = next((it for it in statement.ancestors() if it.kind() in FUNCTIONS), None)
        value = statement.child(1)
        if around == function and value is not None and value.is_named():
            found.append(value)
        if len(found) >= _MAX_RETURNS:
            break
    return found

"""Decides the meaning of an expression for the visitor's choice, by its operators and parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.gates import libraries, origins, words
from openassent_analysis.gates.context import (
    ALWAYS,
    FLAG,
    MAYBE,
    NEVER,
    NOTHING,
    OTHER,
    STORED,
    Kind,
    Meaning,
    Reader,
    compared,
    conjunction,
    disjunction,
    negated,
    selection,
)
from openassent_analysis.gates.index import MAX_TEXT, constant_of, is_constant
from openassent_analysis.gates.texts import meaning_of_text
from openassent_analysis.statements import FUNCTIONS

_WRAPPERS: Final = frozenset({
    "parenthesized_expression", "await_expression", "as_expression", "non_null_expression", "satisfies_expression",
    "expression_statement", "program", "sequence_expression", "jsx_expression", "type_assertion",
})  # fmt: skip
_CASTS: Final = frozenset({"as_expression", "non_null_expression", "satisfies_expression"})
_EQUAL: Final = frozenset({"==", "==="})
_DIFFERENT: Final = frozenset({"!=", "!=="})
_SURE: Final = re.compile(r"accept|agree|grant|consent|opt[-_]?in|allow", re.IGNORECASE)
_EMPTY: Final = frozenset({"", "{}", "[]", "null", "false", "undefined"})
_MISSING: Final = frozenset({"null", "undefined"})
_MAX_PARTS: Final = 60


def meaning(reader: Reader, block: Block, node: SgNode) -> Meaning:
    if block.language == "python":
        return meaning_of_text(node.text()[:MAX_TEXT])
    read = _READ.get(node.kind())
    found = read(reader, block, node) if read else _literal(node)
    return libraries.without_answers(reader, node, found)


def _wrapped(reader: Reader, block: Block, node: SgNode) -> Meaning:
    inner = [it for it in node.children() if it.is_named() and it.kind() != "comment" and not _is_type(it)]
    return reader.meaning(block, inner[0 if node.kind() in _CASTS else -1]) if inner else OTHER


def _unary(reader: Reader, block: Block, node: SgNode) -> Meaning:
    operand = node.field("argument")
    if operand is None or not node.text().startswith("!"):
        return OTHER
    return negated(reader.meaning(block, operand))


def _ternary(reader: Reader, block: Block, node: SgNode) -> Meaning:
    parts = [node.field(name) for name in ("condition", "consequence", "alternative")]
    test, one, other = (reader.meaning(block, part) if part is not None else OTHER for part in parts)
    return selection(test, one, other)


def _assignment(reader: Reader, block: Block, node: SgNode) -> Meaning:
    right = node.field("right")
    return reader.meaning(block, right) if right is not None else OTHER


def _object(reader: Reader, block: Block, node: SgNode) -> Meaning:
    """Returns the meaning of an object: that of the objects it spreads, or of the categories that it allows."""
    refused = False
    for part in node.children()[:_MAX_PARTS]:
        inner = part.child(1) if part.kind() == "spread_element" else None
        if inner is not None and (found := reader.meaning(block, inner)).kind is not Kind.OTHER:
            return found
        key, value = part.field("key"), part.field("value")
        if key is None or value is None or value.kind() not in {"true", "false"}:
            continue
        name = key.text().strip("\"'")
        if words.CATEGORY.fullmatch(name) or words.strength(name) > 0:
            if value.kind() == "true":
                return ALWAYS
            refused = True
    return NEVER if refused else OTHER


def _is_type(node: SgNode) -> bool:
    return node.kind().endswith("type") or node.kind() in {"type_identifier", "type_arguments"}


def _literal(node: SgNode) -> Meaning:
    kind = node.kind()
    if kind in {"false", "null", "undefined"}:
        return NEVER
    if kind in {"true", "array", "regex", "template_string"}:
        return ALWAYS
    if kind == "number":
        return NEVER if node.text() in {"0", "0.0"} else ALWAYS
    if kind == "string":
        return NEVER if node.text()[1:-1] in _EMPTY else ALWAYS
    return OTHER


def _binary(reader: Reader, block: Block, node: SgNode) -> Meaning:
    left, right, sign = node.field("left"), node.field("right"), node.field("operator")
    if left is None or right is None or sign is None:
        return OTHER
    operator = sign.text()
    if operator in {"&&", "||", "??"}:
        one, other = reader.meaning(block, left), reader.meaning(block, right)
        return conjunction(one, other) if operator == "&&" else disjunction(one, other)
    if operator == "in":
        return reader.meaning(block, right)
    if operator in _EQUAL or operator in _DIFFERENT:
        found = _comparison(reader, block, left, right)
        return negated(found) if operator in _DIFFERENT else found
    if operator in {">", ">="}:  # cookie.indexOf('consent=1') > -1
        found = reader.meaning(block, left)
        return found._replace(false=NOTHING) if found.kind is not Kind.OTHER else OTHER
    return OTHER


def _comparison(reader: Reader, block: Block, left: SgNode, right: SgNode) -> Meaning:
    value, literal = (right, left) if is_constant(left) else (left, right)
    found = reader.meaning(block, value)
    written = constant_of(reader.index, literal)
    if ".indexOf" in value.text()[-200:] and written == "-1":
        return negated(found._replace(false=NOTHING))
    if found.kind is Kind.STORED:
        if written in {"true", "1"}:
            return STORED
        return FLAG if _SURE.search(written) and words.says_yes(written) else OTHER
    if found.kind is Kind.OTHER:
        found = origins.of_equality(reader, value, literal)
        return found if found != OTHER else _agreed(reader, value, written)
    if written in _MISSING:
        return negated(found._replace(false=NOTHING))
    falsy = literal.kind() != "string" and written in {"false", "0", ""}
    return compared(found, positive=words.says_yes(written), falsy=falsy)


def _agreed(reader: Reader, value: SgNode, written: str) -> Meaning:
    """Returns the meaning of comparing an unknown value with a word for consent, such as `status === 'allow'`."""
    if not _SURE.match(written) or not words.says_yes(written) or origins.ENVIRONMENT.search(value.text()[:MAX_TEXT]):
        return OTHER
    return FLAG if any(words.PACKAGE.fullmatch(it.module) for it in reader.index.imports.values()) else MAYBE


_READ: Final[dict[str, Callable[[Reader, Block, SgNode], Meaning]]] = {
    **dict.fromkeys(_WRAPPERS, _wrapped),
    "unary_expression": _unary,
    "binary_expression": _binary,
    "ternary_expression": _ternary,
    "assignment_expression": _assignment,
    **dict.fromkeys(FUNCTIONS, origins.returned),
    "identifier": origins.of_name,
    "shorthand_property_identifier": origins.of_name,
    "member_expression": origins.of_member,
    "subscript_expression": origins.of_member,
    "call_expression": origins.of_call,
    "new_expression": origins.of_call,
    "object": _object,
}

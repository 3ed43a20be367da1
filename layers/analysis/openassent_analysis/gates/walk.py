"""Follows a node outward, to the conditions, callbacks, and elements around it, and to the callers of its functions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.gates import events, libraries, markup, words
from openassent_analysis.gates.context import (
    GIVEN,
    NOTHING,
    RUNS,
    WAITS,
    Found,
    Implied,
    Kind,
    Reader,
    any_of,
    both,
    either,
    either_of,
    within,
)
from openassent_analysis.gates.events import Refused
from openassent_analysis.gates.index import MAX_ANCESTORS
from openassent_analysis.gates.origins import imported
from openassent_analysis.statements import FUNCTIONS

_BRANCHES: Final = frozenset(
    {"if_statement", "ternary_expression", "elif_clause", "while_statement", "conditional_expression"}
)
_MAX_USES: Final = 20
_SEQUENCES: Final = frozenset({"statement_block", "program", "block", "module", "switch_case", "switch_default"})
_KEYED: Final = frozenset({"pair", "method_definition", "jsx_attribute", "keyword_argument", "field_definition"})
_LEAVES: Final = frozenset(
    {"return_statement", "throw_statement", "raise_statement", "continue_statement", "break_statement"}
)
_BLOCKS: Final = frozenset({"statement_block", "block"})
_HANDLERS: Final = frozenset({"catch_clause", "except_clause"})
_WITH_BLOCKS: Final = _HANDLERS | {"else_clause"}
_CATEGORY_KEY: Final = re.compile(
    r"""["']?(?:category|consent\w{0,20}|purposes?|cookieCategory|cookieCategories)["']?\s{0,9}:\s{0,9}\[?\s{0,9}["'`](\w+)"""
)
# category: { and: ['measurement', 'marketing'] }
_CATEGORY_IS: Final = re.compile(r"""["']?category["']?\s{0,9}:\s{0,9}\{\s{0,40}(?:and|or|not)\b""")
_BLOCKED: Final = re.compile(r"""["']?type["']?\s{0,9}:\s{0,9}["'`]text/plain""")
_WAITS_FOR: Final = re.compile(r"(?:wait|until|when|require|ensure|ask|request|get)\w{0,20}[cC]onsent\w{0,20}$")


def found(reader: Reader, block: Block, node: SgNode, inside: SgNode | None) -> Found:
    """Returns the gates of a node, up to the function `inside` if it is given."""
    try:
        around = _around(reader, block, node, inside)
    except Refused:
        return RUNS
    if around.closed or inside is not None or block.outer is None or block.host is None:
        return around
    outer = _found_outside(reader, block.outer, block.host)
    # A script in markup that a component or a function returns runs where that is used.
    return within(outer.implied, around)._replace(
        callers=around.callers or outer.callers, handed_on=around.handed_on or outer.handed_on
    )


def _found_outside(reader: Reader, block: Block, host: SgNode) -> Found:
    """Returns the gates of markup or a script in code. A constant's runs where its name is used."""
    holder = host.parent()
    name = holder.field("name") if holder is not None and holder.kind() == "variable_declarator" else None
    if name is None or name.kind() != "identifier" or name.text() in reader.index.exports:
        return reader.found(block, host)
    uses = [it for it in block.uses.get(name.text(), ())[:_MAX_USES] if it != name]
    return any_of([reader.found(block, use) for use in uses]) if uses else reader.found(block, host)


def _around(reader: Reader, block: Block, node: SgNode, inside: SgNode | None) -> Found:
    implied = _implied_by_itself(reader, block, node)
    called: Found | None = None
    child = node
    for parent in node.ancestors()[:MAX_ANCESTORS]:
        if implied.given:
            return WAITS
        if inside is not None and parent == inside:
            return Found(implied)
        implied = both(implied, _implied(reader, block, parent, child))
        if parent.kind() in FUNCTIONS and called is None and inside is None:
            called = reader.callers(block, parent)
        child = parent
    return within(implied, called or RUNS)


def _implied_by_itself(reader: Reader, block: Block, node: SgNode) -> Implied:
    if libraries.loads_by_itself(reader, node):
        return GIVEN
    tag = node.child(0) if node.kind() == "script_element" else node
    return markup.implied_by_tag(reader, block, tag) if tag is not None and tag.kind() in markup.TAGS else NOTHING


def _implied(reader: Reader, block: Block, parent: SgNode, child: SgNode) -> Implied:
    """Returns the gate implied by a parent that runs this child. Raises Refused."""
    read = _READ.get(parent.kind())
    return read(reader, block, parent, child) if read else NOTHING


def _implied_by_sequence(reader: Reader, block: Block, sequence: SgNode, child: SgNode) -> Implied:
    implied = _implied_by_earlier(reader, block, sequence, child)
    return both(implied, _implied_by_case(reader, block, sequence)) if sequence.kind() == "switch_case" else implied


def _implied_by_arguments(reader: Reader, _: Block, given: SgNode, child: SgNode) -> Implied:
    call = given.parent()
    if call is None or call.kind() not in {"call_expression", "new_expression"}:
        return NOTHING
    return events.implied_by_callback(reader, call, child)


def _implied_by_key(reader: Reader, _: Block, pair: SgNode, child: SgNode) -> Implied:
    return events.implied_by_key(reader, pair, child)


def _implied_by_object(reader: Reader, _: Block, properties: SgNode, __: SgNode) -> Implied:
    return GIVEN if reader.has_category(properties) else NOTHING


def _implied_by_assignment(_: Reader, __: Block, assignment: SgNode, child: SgNode) -> Implied:
    return events.implied_by_assignment(assignment, child)


def _implied_by_element(reader: Reader, block: Block, element: SgNode, child: SgNode) -> Implied:
    tag = element.child(0)
    return markup.implied_by_tag(reader, block, tag) if tag is not None and tag != child else NOTHING


def _implied_by_tag(reader: Reader, block: Block, tag: SgNode, child: SgNode) -> Implied:
    if markup.tag_waits(reader, tag):
        return GIVEN
    return markup.implied_by_opening(reader, block, tag) if child == tag.field("name") else NOTHING


def _implied_by_decorator(_: Reader, __: Block, definition: SgNode, ___: SgNode) -> Implied:
    first = definition.child(0)
    return GIVEN if first is not None and words.strength(first.text()) > 1 else NOTHING


def _implied_by_branch(reader: Reader, block: Block, branch: SgNode, child: SgNode) -> Implied:
    test = branch.field("condition")
    if test is None or test == child:
        return NOTHING
    meaning = reader.meaning(block, test)
    if child.kind() == "else_clause" or child == branch.field("alternative"):
        return meaning.false
    return meaning.true


def _implied_by_operator(reader: Reader, block: Block, operation: SgNode, child: SgNode) -> Implied:
    left, sign = operation.field("left"), operation.field("operator")
    if left is None or left == child or sign is None:
        return NOTHING
    if sign.text() in {"&&", "and"}:
        return reader.meaning(block, left).true
    return reader.meaning(block, left).false if sign.text() in {"||", "or"} else NOTHING


def _implied_by_case(reader: Reader, block: Block, case: SgNode) -> Implied:
    body = case.parent()
    switch = body.parent() if body is not None else None
    test, value = switch.field("value") if switch is not None else None, case.field("value")
    if test is None or value is None:
        return NOTHING
    found = reader.meaning(block, test)
    return found.true if found.kind is not Kind.OTHER and words.says_yes(value.text().strip("\"'")) else NOTHING


def _implied_by_earlier(reader: Reader, block: Block, sequence: SgNode, statement: SgNode) -> Implied:
    """Returns the gate implied by earlier statements such as `if (!consent) return`."""
    guards = reader.guards(block, sequence)
    if not guards:
        return NOTHING
    before = bisect_right([end for end, _ in guards], statement.range().start.index)
    return guards[before - 1][1] if before else NOTHING


def guards_of(reader: Reader, block: Block, sequence: SgNode) -> list[tuple[int, Implied]]:
    """Returns the gate implied behind each statement that leaves the sequence under a condition, by its end."""
    found: list[tuple[int, Implied]] = []
    known = NOTHING
    for statement in sequence.children():
        after = _known_after(reader, block, statement)
        if after != NOTHING:
            known = both(known, after)
            found.append((statement.range().end.index, known))
    return found


def _known_after(reader: Reader, block: Block, statement: SgNode) -> Implied:
    kind = statement.kind()
    if kind == "if_statement":
        then, otherwise = (_at_end(reader, block, statement.field(it)) for it in ("consequence", "alternative"))
        test = statement.field("condition")
        if test is None or then == otherwise == NOTHING:
            return NOTHING
        meaning = reader.meaning(block, test)
        return either(both(meaning.true, then), both(meaning.false, otherwise))
    if kind == "try_statement":
        handlers = (it for it in statement.children() if it.kind() in _HANDLERS)
        ways = [_at_end(reader, block, it) for it in (statement.field("body"), *handlers)]
        return either_of(ways) or NOTHING
    if kind == "statement_block":
        return _at_end(reader, block, statement)
    if kind == "expression_statement":
        first = statement.child(0)
        call = first.child(1) if first is not None and first.kind() == "await_expression" else None
        callee = call.field("function") if call is not None else None
        if callee is not None and _WAITS_FOR.search(callee.text()[-100:]):
            export = reader.index.imports.get(callee.text())
            return imported(export).true if export else GIVEN
    return NOTHING


def _at_end(reader: Reader, block: Block, branch: SgNode | None) -> Implied:
    """Returns the gate implied where a branch ends. Everything follows from an end that is never reached."""
    if branch is None:
        return NOTHING
    if branch.kind() in _LEAVES:
        return GIVEN
    last = next((it for it in reversed(branch.children()) if it.is_named() and it.kind() != "comment"), None)
    if last is None:
        return NOTHING
    if branch.kind() in _BLOCKS:
        if last.kind() in _LEAVES:
            return GIVEN
        guards = reader.guards(block, branch)
        return guards[-1][1] if guards else NOTHING
    return _at_end(reader, block, last) if branch.kind() in _WITH_BLOCKS else NOTHING


def category_of(properties: SgNode) -> bool:
    """Returns whether an object names the category of consent that it belongs to, and waits for it."""
    if libraries.never_waits(properties):
        return False
    for other in properties.children():
        if other.kind() == "pair":
            text = other.text()[:200]
            if _BLOCKED.match(text):
                return True
            match = _CATEGORY_KEY.match(text)
            if match and words.CATEGORY.fullmatch(match[1]):
                return True
            value = other.field("value") if _CATEGORY_IS.match(text) else None
            if value is not None and libraries.meaning_of_condition(value).true.given:
                return True
    return False


_READ: Final[dict[str, Callable[[Reader, Block, SgNode, SgNode], Implied]]] = {
    **dict.fromkeys(_BRANCHES, _implied_by_branch),
    **dict.fromkeys(_SEQUENCES, _implied_by_sequence),
    **dict.fromkeys(_KEYED, _implied_by_key),
    **dict.fromkeys(markup.ELEMENTS, _implied_by_element),
    **dict.fromkeys(markup.TAGS, _implied_by_tag),
    "binary_expression": _implied_by_operator,
    "boolean_operator": _implied_by_operator,
    "arguments": _implied_by_arguments,
    "argument_list": _implied_by_arguments,
    "object": _implied_by_object,
    "assignment_expression": _implied_by_assignment,
    "decorated_definition": _implied_by_decorator,
}

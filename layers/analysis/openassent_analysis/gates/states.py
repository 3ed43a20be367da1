"""Values that change: state, stores, variables, and storage. Their meaning follows from the places that set them."""

from __future__ import annotations

import re
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.gates import words
from openassent_analysis.gates.context import (
    GIVEN,
    NEVER,
    NOTHING,
    OTHER,
    UNCLEAR,
    Implied,
    Kind,
    Meaning,
    Reader,
    both,
    either,
    either_of,
)
from openassent_analysis.gates.index import Declared, Place, arguments_of, callee_of, is_constant, returns_of
from openassent_analysis.gates.texts import by_name
from openassent_analysis.reading import resource
from openassent_analysis.statements import FUNCTIONS

_SETTERS: Final = frozenset({"set", "next", "update", "setState"})
_WRITES: Final = resource("queries")["storage_writes"]
_MAX_PLACES: Final = 20
# Names of functions that run when the visitor agrees.
_ACCEPTS: Final = re.compile(r"(?:on|handle|do|user)?_?(?:accept|agree|allow|opt_?in|grant)", re.IGNORECASE)
_SAVED: Final = re.compile(r"""(?:setItem|[sS]et_?[cC]ookie|[cC]ookies?\.set)\(\s{0,9}([\w"'`.:-]{1,100})\s{0,9},""")
_MAX_FUNCTION: Final = 2_000
_NAMED: Final = FUNCTIONS | {"variable_declarator", "pair"}
_COOKIE_WRITES: Final = resource("queries")["cookie_writes"]
_KEY: Final = re.compile(r"""\(\s*["'`]([^"'`]{1,100})["'`]""")


def meaning_of_state(reader: Reader, declared: Declared, name: str) -> Meaning:
    """Returns the meaning of a value that starts as the declaration says, and that other places set."""
    block, value = declared.block, declared.value
    start, setters = _start(declared)
    first = NEVER if start is None or _is_no(start) else reader.meaning(block, start)
    true = first.true
    places = list(_places(reader, name, setters))
    if not places:
        return by_name(name) if first == NEVER and not _is_constant(start) else first._replace(false=NOTHING)
    stored = first.kind is Kind.STORED
    if stored or (declared.part == "" and value is None and not true.given):
        true = NEVER.true
    chosen = False
    for block_of_place, node, given in places[:_MAX_PLACES]:
        if given is None and first.true.given and first != NEVER:
            continue  # read from storage for the code that asks the visitor
        if given is not None and _is_no(given):
            continue
        if given is not None and reader.meaning(block_of_place, given).kind is Kind.STORED:
            stored = True  # the value that the other places have set earlier
            continue
        implied = _set_to(reader, Place(block_of_place, node), given)
        chosen = chosen or (implied.given and given is not None and given.kind() != "false")
        true = either(true, implied)
    if true == NOTHING or (stored and not chosen):
        return OTHER
    return Meaning(true, NOTHING, Kind.FLAG)


def meaning_if_equal(reader: Reader, declared: Declared, name: str, literal: SgNode) -> Meaning:
    """Returns the meaning of `state === literal`, by the places that may set the state to the literal."""
    start, setters = _start(declared)
    if start is not None and (not is_constant(start) or _same(start, literal)):
        return OTHER
    ways = [
        _set_to(reader, Place(block, node), given)
        for block, node, given in _places(reader, name, setters)[:_MAX_PLACES]
        if given is None or not is_constant(given) or _same(given, literal)
    ]
    return _any_of(ways, Kind.FLAG)


def meaning_of_parameter(reader: Reader, function: SgNode, name: str) -> Meaning:
    """Returns the meaning of a function's parameter, by the arguments of the file's calls."""
    given = function.field("parameters")
    names = [it for it in given.children() if it.is_named()] if given is not None else []
    position = next((at for at, it in enumerate(names) if (it.field("pattern") or it).text() == name), None)
    calls = reader.calls(function) if position is not None else None
    ways = []
    for call in calls or ():
        arguments = arguments_of(call.node)
        if position is None or position >= len(arguments):
            return OTHER
        ways.append(_set_to(reader, call, arguments[position]))
    return _any_of(ways, Kind.CHOICE)


def meaning_of_field(reader: Reader, name: str) -> Meaning:
    """Returns the meaning of `this.name`, by the places that set it."""
    places = [
        place
        for place in reader.index.assignments.get(name, ())[:_MAX_PLACES]
        if (left := place.node.field("left")) is not None and left.text().startswith("this.")
    ]
    values = [(place, value) for place in places if (value := place.node.field("right")) is not None]
    if len(values) == 1 and values[0][1].kind() != "true":  # it isn't true until that place has run
        return reader.meaning(values[0][0].block, values[0][1])
    return _any_of([_set_to(reader, place, value) for place, value in values], Kind.CHOICE)


def _any_of(ways: list[Implied], kind: Kind) -> Meaning:
    true = either_of(ways) or NOTHING
    return Meaning(true, NOTHING, kind) if true != NOTHING else OTHER


def _same(one: SgNode, other: SgNode) -> bool:
    return one.text().strip("\"'") == other.text().strip("\"'")


def _is_no(value: SgNode) -> bool:
    """Returns whether a state is set to a word for a refusal or for no decision yet."""
    return value.kind() == "string" and not words.says_yes(value.text()[1:-1])


def meaning_of_context(reader: Reader, name: str) -> Meaning:
    """Returns the meaning of a context's value, by the values of the file's provider elements."""
    ways = []
    for place in reader.index.uses.get(name, ())[:_MAX_PLACES]:
        tag = place.node.parent()
        if tag is not None and tag.kind() in {"member_expression", "nested_identifier"}:  # <Context.Provider>
            tag = tag.parent()
        if tag is None or tag.kind() not in {"jsx_opening_element", "jsx_self_closing_element"}:
            continue
        for attribute in tag.children():
            value = attribute.child(2) if attribute.kind() == "jsx_attribute" else None
            if value is None or not attribute.text().startswith("value"):
                continue
            ways.append(_any_choice(reader, Place(place.block, value)))
    found = _any_of(ways, Kind.CHOICE)
    return found if found != OTHER else by_name(name)


def _any_choice(reader: Reader, place: Place) -> Implied:
    inner = next((it for it in place.node.children() if it.is_named()), place.node)
    if inner.kind() == "identifier":
        declared = reader.index.declarations.get(inner.text(), ())
        value = declared[0].value if declared else None
        if value is not None:
            inner = _memoized(value) or inner
    if inner.kind() != "object":
        return reader.meaning(place.block, inner).true
    for part in inner.children():
        value = part if part.kind() == "shorthand_property_identifier" else part.field("value")
        implied = reader.meaning(place.block, value).true if value is not None else NOTHING
        if value is not None and value.kind() not in FUNCTIONS and (implied.given or implied.providers):
            return implied
    return NOTHING


def _memoized(value: SgNode) -> SgNode | None:
    """Returns the object that a value is, or that `useMemo` gets from a function."""
    if value.kind() == "call_expression" and callee_of(value).rpartition(".")[2] == "useMemo":
        function = next(iter(arguments_of(value)), None)
        value = next(iter(returns_of(function)), value) if function is not None else value
    return value if value.kind() == "object" else None


def _is_constant(start: SgNode | None) -> bool:
    return start is not None and start.kind() in {"true", "false", "number", "string"}


def _start(declared: Declared) -> tuple[SgNode | None, set[str]]:
    """Returns the first value, and the functions that set another one."""
    value = declared.value
    setters: set[str] = set()
    if value is None or value.kind() not in {"call_expression", "new_expression"}:
        return value, setters
    given = value.field("arguments")
    arguments = [child for child in given.children() if child.is_named()] if given else []
    if declared.part == "0":
        pattern = declared.node.field("name")
        parts = [part for part in pattern.children() if part.is_named()] if pattern is not None else []
        if len(parts) > 1:
            setters.add(parts[1].text())
    callee = value.field("function") or value.field("constructor")
    if declared.part in {"", "0"} and callee is not None:
        start = arguments[0] if arguments else None
        if start is not None and start.kind() in FUNCTIONS:  # useState(() => ...)
            start = next(iter(returns_of(start)), start)
        return start, setters
    return value, setters


def _places(reader: Reader, name: str, setters: set[str]) -> list[tuple[Block, SgNode, SgNode | None]]:
    found: list[tuple[Block, SgNode, SgNode | None]] = []
    for setter in setters:
        for place in reader.index.uses.get(setter, ())[: _MAX_PLACES * 2]:
            parent = place.node.parent()
            if parent is None or parent.kind() == "array_pattern":
                continue
            if parent.kind() == "call_expression" and parent.field("function") == place.node:
                found.append((place.block, parent, _argument(parent)))
            else:
                found.append((place.block, place.node, None))
    found += [
        (place.block, place.node, place.node.field("right"))
        for place in reader.index.assignments.get(name, ())[:_MAX_PLACES]
    ]
    for place in reader.index.uses.get(name, ())[: _MAX_PLACES * 2]:
        member = place.node.parent()
        call = member.parent() if member is not None and member.kind() == "member_expression" else None
        if member is None or call is None or call.kind() != "call_expression":
            continue
        method = member.field("property")
        if method is not None and method.text() in _SETTERS:
            found.append((place.block, call, _argument(call)))
    return found


def _argument(call: SgNode) -> SgNode | None:
    given = call.field("arguments")
    return next((child for child in given.children() if child.is_named()), None) if given else None


def _set_to(reader: Reader, place: Place, value: SgNode | None) -> Implied:
    """Returns the gate implied by a value that one place has set to true."""
    found = reader.found(place.block, place.node)
    if not found.closed and _saves_choice(reader, place.node, value, by_others=found.handed_on or bool(found.callers)):
        return GIVEN
    implied = both(found.implied, UNCLEAR) if found.callers and not found.closed else found.implied
    if value is None:
        return implied if implied.given or implied.unclear else both(implied, UNCLEAR)
    if value.kind() in FUNCTIONS:  # setChoices(old => ({...old, analytics: true}))
        body = value.field("body")
        true = reader.meaning(place.block, body).true if body is not None else NOTHING
        return both(implied, true)
    return both(implied, reader.meaning(place.block, value).true)


def _saves_choice(reader: Reader, node: SgNode, value: SgNode | None, *, by_others: bool) -> bool:
    """Returns whether the function around a node runs when the visitor chooses, by its name or its writes."""
    for ancestor in node.ancestors()[:_MAX_PLACES]:
        name = (ancestor.field("name") or ancestor.field("key")) if ancestor.kind() in _NAMED else None
        if name is None or name.text()[:1].isupper() or name.text().startswith("use"):
            continue
        if by_others and _ACCEPTS.match(name.text()):
            return True
        if value is None or is_constant(value):
            return False
        keys = (key.strip("\"'`") for key in _SAVED.findall(ancestor.text()[:_MAX_FUNCTION]))
        return any(words.is_key(reader.index.strings.get(key, key)) for key in keys)
    return False


def written_with_consent(reader: Reader, key: str) -> bool:
    """Returns whether code that only runs when the visitor agrees writes the key of storage."""
    if not key or len(key) > 100:
        return False
    for block in reader.index.scripts:
        if key not in block.text:
            continue
        for call in block.root.find_all(_WRITES)[:200]:
            text = call.text()[:300]
            match = _KEY.search(text)
            named = match[1] if match else text.partition("(")[2].partition(",")[0].strip()
            if named != key and not _is_name_of(reader, named, key):
                continue
            if _agrees(reader, Place(block, call)):
                return True
        for write in block.root.find_all(_COOKIE_WRITES)[:_MAX_PLACES]:
            value = write.field("right")
            written = value.text()[:300] if value is not None else ""
            if written[1:].startswith(f"{key}=") and _agrees(reader, Place(block, write)):
                return True
    return False


def _is_name_of(reader: Reader, name: str, key: str) -> bool:
    return any(
        declared.value is not None and declared.value.text().strip("\"'`") == key
        for declared in reader.index.declarations.get(name, ())[:1]
    )


def _agrees(reader: Reader, place: Place) -> bool:
    found = reader.found(place.block, place.node)
    if found.closed:
        return True
    for ancestor in place.node.ancestors()[:50]:
        if ancestor.kind() in FUNCTIONS:
            name = ancestor.field("name")
            if name is not None and (words.accepts(name.text()) or words.KEY.search(name.text())):
                return True
    return False

"""Folds expressions of a script to the strings that they can have, without running anything.

Follows constants of the same file, properties of objects, and arguments of functions that are called in place. A part
that isn't known becomes a wildcard, which is a legal character of a host name: the known end of the name decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, NamedTuple

from ast_grep_py import Config, SgNode

from openassent_analysis.blocks import Block, plain_name
from openassent_analysis.reading import resource
from openassent_analysis.statements import FUNCTIONS

UNKNOWN: Final = "_"
_MAX_DEPTH: Final = 12
_MAX_STEPS: Final = 150
_MAX_LENGTH: Final = 1_000
_MAX_ALTERNATIVES: Final = 4
_MAX_PARTS: Final = 40
_MAX_USES: Final = 20
_MAX_ANCESTORS: Final = 200

_WRAPPERS: Final = frozenset({
    "parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression", "await_expression",
    "jsx_expression", "template_substitution", "expression_statement", "spread_element",
})  # fmt: skip
_NAMES: Final = frozenset({
    "identifier", "member_expression", "subscript_expression", "shorthand_property_identifier_pattern",
})  # fmt: skip
# The parts of an expression of which one is its value.
_EITHER: Final = {"ternary_expression": ("consequence", "alternative"), "assignment_expression": ("right",)}
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_PERCENT: Final = re.compile(r"%([2-7][0-9a-fA-F])")
# Functions and methods that keep the host of their argument or receiver.
_RETURNS_ARGUMENT: Final = frozenset(resource("frameworks")["returns_argument"].splitlines())
# Functions whose result has the members of their argument: of Vue, Svelte, React, and JavaScript itself.
_HOLDS_ARGUMENT: Final = frozenset({"ref", "reactive", "shallowRef", "$state", "Object.freeze", "useState", "readonly"})
# Functions that compute a value: Vue, Svelte, React, Solid, Angular.
_COMPUTES: Final = frozenset({"computed", "useMemo", "createMemo", "by"})
_RETURNS: Final[Config] = {"rule": {"kind": "return_statement"}}
_LOOPS: Final = frozenset({"forEach", "map", "each"})
# The attribute of an element that a loop sets along with others.
_ADDRESS: Final = "src"
_PROTOCOL: Final = "location.protocol"
_PAIR: Final = 2
_LONGEST_CALLEE: Final = 100
_RETURNS_RECEIVER: Final = frozenset({"replace", "trim", "toString", "toLowerCase", "href", "valueOf"})


def named_values(block: Block, name: str, members: str = "") -> tuple[str, ...]:
    """Returns the strings that a script assigns to a name, or to members (`a.b`) of what it assigns.

    Cached, because many attributes can have the same name.
    """
    key = f"{name}.{members}"
    if key not in block.named:
        folding = _Folding(block)
        nodes: Iterable[SgNode] = block.constants.get(name) or block.properties.get(name, [])
        for member in filter(None, members.split(".")):
            nodes = list(members_of(nodes, member))
        block.named[key] = tuple(value for node in nodes for value in folding.fold(node, 0))
    return block.named[key]


def members_of(nodes: Iterable[SgNode], name: str) -> Iterator[SgNode]:
    """Yields the values of a property of objects, also of those in array literals."""
    for node in nodes:
        inner = _unwrapped(node)
        for holder in arguments_of(inner) if inner.kind() == "array" else (inner,):
            if (value := _property(holder, name)) is not None:
                yield value


def values(block: Block, node: SgNode) -> tuple[str, ...]:
    """Returns the strings that an expression can have, at most four. Unknown parts are wildcards."""
    return _Folding(block).fold(node, 0)


class _Folding:
    def __init__(self, block: Block) -> None:
        self._block = block
        self._steps = 0

    def fold(self, node: SgNode, depth: int) -> tuple[str, ...]:
        self._steps += 1
        if depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            return (UNKNOWN,)
        kind = node.kind()
        if kind == "string":
            return (_unescaped(node.text()[1:-1]),)
        if kind in FUNCTIONS:
            return self._computed(node, depth)
        if kind in {"template_string", "binary_expression"}:
            return self._concatenated(node, depth)
        if kind in _WRAPPERS:
            inner = next((child for child in node.children() if child.is_named() and child.kind() != "comment"), None)
            return self.fold(inner, depth + 1) if inner else (UNKNOWN,)
        if kind in {"array", "object"}:
            return self._either(*_parts(node), depth=depth)
        if kind in _EITHER:
            return self._either(*map(node.field, _EITHER[kind]), depth=depth)
        if kind in _NAMES:
            return self._named(node, depth)
        if kind in {"call_expression", "new_expression"}:
            return self._called(node, depth)
        return (UNKNOWN,)

    def _either(self, *nodes: SgNode | None, depth: int) -> tuple[str, ...]:
        found = [value for node in nodes if node for value in self.fold(node, depth + 1)]
        return tuple(dict.fromkeys(found))[:_MAX_ALTERNATIVES] or (UNKNOWN,)

    def _concatenated(self, node: SgNode, depth: int) -> tuple[str, ...]:
        if node.kind() == "template_string":
            return self._joined((self._fragment(child, depth) for child in node.children()[1:-1]), "")
        operator = node.field("operator")
        sign = operator.text() if operator else ""
        if sign in {"||", "??"}:
            return self._either(node.field("left"), node.field("right"), depth=depth)
        if sign == "&&":
            return self._either(node.field("right"), depth=depth)
        parts: list[SgNode] = []
        current: SgNode | None = node
        while current is not None and sign == "+":
            right = current.field("right")
            if right is None or len(parts) >= _MAX_PARTS:
                return (UNKNOWN,)
            parts.append(right)
            current = current.field("left")
            operator = current.field("operator") if current and current.kind() == "binary_expression" else None
            sign = operator.text() if operator else ""
        if current is None or not parts:
            return (UNKNOWN,)
        return self._joined((self.fold(part, depth + 1) for part in [current, *reversed(parts)]), "")

    def _fragment(self, child: SgNode, depth: int) -> tuple[str, ...]:
        return self.fold(child, depth + 1) if child.kind() == "template_substitution" else (_unescaped(child.text()),)

    def _joined(self, parts: Iterable[tuple[str, ...]], separator: str) -> tuple[str, ...]:
        found: tuple[str, ...] = ()
        for number, part in enumerate(parts):
            if number >= _MAX_PARTS:
                return found
            if not number:
                found = part
                continue
            pairs = list(product(found, part))[:_MAX_ALTERNATIVES]
            found = tuple((one + separator + other)[:_MAX_LENGTH] for one, other in pairs)
        return found or ("",)

    def _called(self, node: SgNode, depth: int) -> tuple[str, ...]:
        callee = node.field("function") or node.field("constructor")
        given = node.field("arguments")
        if callee is None or given is None:
            return (UNKNOWN,)
        if given.kind() == "template_string":  # String.raw`...`
            return self.fold(given, depth + 1)
        arguments = arguments_of(given)
        name = callee.text()[-40:].rpartition(".")[2]
        if name == "URL" and arguments:  # new URL(path, base)
            return self._joined((self.fold(part, depth + 1) for part in reversed(arguments[:2])), "")
        if name in _RETURNS_ARGUMENT and arguments:
            return tuple(_PERCENT.sub(_character, value) for value in self.fold(arguments[0], depth + 1))
        if name in _COMPUTES and arguments:  # after the names that it depends on, of Ember
            return self._computed(next((it for it in arguments if it.kind() in FUNCTIONS), arguments[0]), depth)
        written, constants = callee.text()[-_LONGEST_CALLEE:], self._block.constants
        if known := constants.get(written) or constants.get(written.removeprefix("this.")):
            return self._either(*known, depth=depth)
        receiver = callee.field("object")
        return self._by_method(name, receiver, arguments, depth) if receiver is not None else (UNKNOWN,)

    def _by_method(self, name: str, receiver: SgNode, arguments: list[SgNode], depth: int) -> tuple[str, ...]:
        if name in _RETURNS_RECEIVER:
            return self.fold(receiver, depth + 1)
        if name == "concat":
            return self._joined((self.fold(part, depth + 1) for part in [receiver, *arguments]), "")
        if name == "join" and receiver.kind() == "array":
            separator = self.fold(arguments[0], depth + 1)[0] if arguments else ","
            return self._joined((self.fold(part, depth + 1) for part in arguments_of(receiver)), separator)
        return (UNKNOWN,)

    def _computed(self, function: SgNode, depth: int) -> tuple[str, ...]:
        """Folds a function's result."""
        body = function.field("body") if function.kind() in FUNCTIONS else None
        if body is None or body.kind() != "statement_block":
            return self._either(body, depth=depth)
        returned = (arguments_of(it) for it in body.find_all(_RETURNS)[:_MAX_ALTERNATIVES])
        return self._either(*(found[0] for found in returned if found), depth=depth)

    def _named(self, node: SgNode, depth: int) -> tuple[str, ...]:
        if node.kind() == "shorthand_property_identifier_pattern":  # const {video} = config
            return self._either(*self._taken_from(node), depth=depth)
        if node.kind() == "identifier" and (loop := _looped(self._block, node)) is not None:
            taken = self._taken(loop, node.text()) or self._block.constants.get(node.text(), [])
            return self._either(*taken, depth=depth)
        if node.kind() == "identifier" and (given := _argument(node)) is not None:
            return self.fold(given, depth + 1) if given != node else (UNKNOWN,)
        constants = self._block.constants
        if known := constants.get(plain_name(node)):
            return self._either(*known, depth=depth)
        if node.text().endswith(_PROTOCOL):
            return ("https:",)
        holder, name = node.field("object"), node.field("property") or node.field("index")
        if holder is None or name is None:
            return (UNKNOWN,)
        if holder.kind() == "this" and (own := self._own(name.text())):
            return self._either(*own, depth=depth)
        known = self._held(holder)
        if not known:
            loop = _looped(self._block, holder)
            known = self._listed(loop.array if loop else None)
        # for (const name in attributes) script.setAttribute(name, attributes[name])
        by_name = node.kind() == "subscript_expression" and name.kind() == "identifier"
        all_members = by_name and _looped(self._block, name)
        member = _ADDRESS if all_members else name.text().strip("\"'")
        found: list[SgNode | None] = list(members_of(known, member))
        if not found and not all_members and by_name:
            found = [pair.field("value") for holder in known for pair in _pairs(holder)]  # addresses[name]
        return self._either(*found, depth=depth)

    def _taken_from(self, part: SgNode) -> list[SgNode]:
        """Returns the values of a name that a pattern takes from an object."""
        whole = next((value for it in part.ancestors()[:2] if (value := it.field("value")) is not None), None)
        if whole is None:
            return []
        known = self._block.constants.get(f"{plain_name(whole)}.{part.text()}")
        return known or list(members_of(self._held(whole) or [whole], part.text()))

    def _held(self, holder: SgNode) -> list[SgNode]:
        """Returns the values of a name, or of a property of its values."""
        if known := self._block.constants.get(plain_name(holder)):
            return known
        outer, name = holder.field("object"), holder.field("property")
        if outer is None or name is None or len(holder.text()) > _LONGEST_CALLEE:
            return []
        return list(members_of(self._held(outer), name.text()))

    def _own(self, name: str) -> list[SgNode]:
        """Returns what a component computes for a name, or the default of its property."""
        computed = [value for value in self._block.constants.get(name, ()) if value.kind() in FUNCTIONS]
        return computed or list(members_of(self._block.properties.get(name, ()), "default"))

    def _taken(self, loop: _Loop, name: str) -> list[SgNode]:
        """Returns the values of a loop's variable."""
        if loop.pattern == "array_pattern":  # Object.entries(attributes).forEach(([name, value]) => ...)
            given = loop.array.field("arguments")
            of = next(iter(arguments_of(given)), None) if given is not None else None
            known = self._block.constants.get(of.text()[:200], [of]) if of is not None else []
            return list(members_of(known, _ADDRESS))
        listed = self._listed(loop.array)
        return list(members_of(listed, name)) if loop.pattern == "object_pattern" else listed

    def _listed(self, array: SgNode | None) -> list[SgNode]:
        """Returns the elements of an array literal, or of a constant that is one."""
        if array is not None and array.kind() == "identifier":
            array = next(map(_unwrapped, self._block.constants.get(array.text()[:200], ())), None)
        return arguments_of(array) if array is not None and array.kind() == "array" else []


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text[:_MAX_LENGTH]
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], text[:_MAX_LENGTH])


def _character(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def arguments_of(node: SgNode) -> list[SgNode]:
    """Returns the first arguments of a call, or elements of an array."""
    return [child for child in node.children()[:80] if child.is_named() and child.kind() != "comment"]


def _parts(node: SgNode) -> list[SgNode]:
    """Returns the elements of an array, as the loop over it does, or the property of an object that has its address.

    The object is a computed property, the setting of a property, or the attributes of an element.
    """
    if node.kind() == "array":
        return arguments_of(node)[:_MAX_ALTERNATIVES]
    if (kind := _property(node, "type")) is not None and "text/plain" in kind.text():
        return []
    return [value for name in ("get", "default", _ADDRESS) for value in members_of([node], name)]


def _unwrapped(node: SgNode) -> SgNode:
    """Returns the expression in parentheses, type assertions, and calls like `ref(...)`."""
    while True:
        if node.kind() in _WRAPPERS:
            inner = next((child for child in node.children() if child.is_named()), None)
        elif node.kind() == "call_expression" and (callee := node.field("function")) is not None:
            given = node.field("arguments")
            transparent = callee.text() in _HOLDS_ARGUMENT and given is not None
            inner = next(iter(arguments_of(given)), None) if transparent and given else None
        else:
            return node
        if inner is None:
            return node
        node = inner


def _pairs(node: SgNode) -> list[SgNode]:
    """Returns the first properties of an object literal."""
    node = _unwrapped(node)
    return node.children()[:200] if node.kind() == "object" else []


def _property(node: SgNode, name: str) -> SgNode | None:
    """Returns the value of a property of an object literal, or None."""
    for pair in _pairs(node):
        key = pair.field("key") or pair.field("name")
        if key is not None and key.text().strip("'\"") == name:
            return pair.field("value") or pair
    return None


def _argument(name: SgNode) -> SgNode | None:
    """Returns a parameter's value: of the call in place, or the default. Returns the name itself if it isn't known.

    None if the name isn't a parameter.
    """
    written = name.text()
    for function in name.ancestors()[:_MAX_ANCESTORS]:
        if function.kind() not in FUNCTIONS:
            continue
        parameters = function.field("parameters")
        for place, parameter in enumerate(arguments_of(parameters) if parameters else ()):
            pattern = parameter.field("pattern") or parameter.field("left") or parameter
            if pattern.text() == written:
                default = parameter.field("value") or parameter.field("right")
                return _given_in_place(function, place) or default or name
            if (default := _default_in(pattern, written)) is not None:
                return default
    return None


def _default_in(pattern: SgNode, name: str) -> SgNode | None:
    """Returns the default of a name in an object pattern, `{name = default}`, or None."""
    for part in pattern.children()[:80] if pattern.kind() == "object_pattern" else ():
        left = part.field("left")
        if left is not None and left.text() == name:
            return part.field("right")
    return None


def _elements(block: Block, function: SgNode) -> SgNode | None:
    """Returns the array whose elements a function is called with, as in `[...].forEach(function)`, or None."""
    around = function.parent()
    declared = around if around is not None and around.kind() == "variable_declarator" else function
    name = declared.field("name")
    for handed in (function, *(block.uses.get(name.text(), ())[:_MAX_USES] if name is not None else ())):
        arguments = handed.parent()
        call = arguments.parent() if arguments is not None and arguments.kind() == "arguments" else None
        callee = call.field("function") if call is not None else None
        method = callee.field("property") if callee is not None else None
        array: SgNode | None = callee.field("object") if callee is not None else None
        if array is not None and method is not None and method.text() in _LOOPS:
            return array
    return None


class _Loop(NamedTuple):
    """A loop: its iterable, and the kind of the pattern that its variable is in, or an empty string."""

    array: SgNode
    pattern: str


def _looped(block: Block, name: SgNode) -> _Loop | None:
    """Returns the loop that gives a name its values, or None."""
    written = name.text()
    for around in name.ancestors()[:_MAX_ANCESTORS]:
        if around.kind() == "for_in_statement":
            left, array = around.field("left"), around.field("right")
        elif around.kind() in FUNCTIONS:
            left, array = around.field("parameter"), None  # src => ...
            if left is None and (parameters := around.field("parameters")) is not None:
                left = next(iter(arguments_of(parameters)), None)
            left = (left.field("pattern") or left) if left is not None else None
        else:
            continue
        pattern = _pattern_with(left, written) if left is not None else None
        if pattern is not None:
            array = array if array is not None else _elements(block, around)
            return _Loop(array, pattern) if array is not None else None
    return None


def _pattern_with(left: SgNode, name: str) -> str | None:
    """Returns the kind of the pattern that has a name, an empty string if it is the name itself, or None."""
    kind = left.kind()
    if kind == "object_pattern":
        return kind if any(part.text() == name for part in left.children()[:80]) else None
    if kind == "array_pattern":
        parts = arguments_of(left)
        return kind if len(parts) == _PAIR and parts[1].text() == name else None
    return "" if left.text().rpartition(" ")[2] == name else None


def _given_in_place(function: SgNode, place: int) -> SgNode | None:
    """Returns an argument of a function that is called where it is written, or None."""
    callee, call = function, function.parent()
    while call is not None and call.kind() in {"parenthesized_expression", "member_expression"}:
        if call.kind() == "member_expression" and call.field("property") and not call.text().endswith(".call"):
            return None
        callee, call = call, call.parent()
    if call is None or call.kind() != "call_expression" or call.field("function") != callee:
        return None
    given = call.field("arguments")
    found = arguments_of(given) if given else []
    place += callee.kind() == "member_expression"  # .call(this, ...)
    return found[place] if place < len(found) else None

"""Finds out what runs a function: code in the file that uses its name, or elements whose event attributes name it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import SCRIPTS, Block
from openassent_analysis.gates import events, words
from openassent_analysis.gates.context import RUNS, WAITS, Found, Reader, any_of
from openassent_analysis.gates.events import Refused
from openassent_analysis.gates.index import MAX_ANCESTORS, Place
from openassent_analysis.gating import DEFAULT
from openassent_analysis.reading import pattern_of, resource
from openassent_analysis.statements import FUNCTIONS

_HANDS_ON: Final = pattern_of(resource("frameworks")["hands_on"])
_LIFECYCLE: Final = frozenset(resource("frameworks")["lifecycle"])
_MAX_USES: Final = 20
_AROUND: Final = frozenset({"call_expression", "arguments", "parenthesized_expression", "as_expression"})
_WORD: Final = re.compile(r"[\w$]+")
_PROPERTY: Final = re.compile(r"(?:module\.)?exports\.\w+|[\w$]+\.prototype\.\w+|this\.\w+")
_ACCEPTS: Final = re.compile(r"(?:on|handle)_?(?:accept|agree|allow|opt_?in|grant)", re.IGNORECASE)
_GLOBAL: Final = re.compile(r"(?:window|globalThis|self|global)\.")


def callers(reader: Reader, block: Block, function: SgNode) -> Found:
    """Returns the gates under which a function runs, by the uses of its name."""
    name, owner = name_of(function)
    if not name:
        return _around(reader, block, function)
    if function.kind() == "method_definition" and name in _LIFECYCLE:
        return _of_owner(reader, block, function)
    uses = _uses(reader, function, name, property_only=owner)
    ways = [_use(reader, use, name) for use in uses[:_MAX_USES]]
    ways += _events(reader, name)
    if ways:
        return any_of(ways)
    if not name[:1].isupper() and words.accepts(name) and (words.strength(name) > 1 or _ACCEPTS.match(name)):
        return WAITS  # a handler, not a component such as ConsentBanner
    if owner:
        return _of_owner(reader, block, function, name)
    if exported := reader.index.exports.get(name):
        return _called(exported)
    around = _outer(function)
    if around is None:
        return _called(name)
    # A function that its outer function gives to others, or never calls.
    outer = reader.callers(block, around)
    return outer._replace(handed_on=not outer.closed, callers=outer.callers)


def _around(reader: Reader, block: Block, function: SgNode) -> Found:
    """Returns the gates of a function without a name: it runs at its own place."""
    parent = function.parent()
    if parent is not None and parent.kind() == "export_statement":
        return _called(DEFAULT)
    outer = _outer(function)
    return reader.callers(block, outer) if outer is not None else _whole_default(function)


def _whole_default(node: SgNode) -> Found:
    """Returns that code in `export default ...` runs if the default export is used, or that it runs with the file."""
    for ancestor in node.ancestors()[:20]:
        if ancestor.kind() == "export_statement":
            default = any(it.kind() == "default" for it in ancestor.children())
            if default:
                return _called(DEFAULT)
    return RUNS


def _outer(function: SgNode) -> SgNode | None:
    return next((it for it in function.ancestors()[:MAX_ANCESTORS] if it.kind() in FUNCTIONS), None)


def _of_owner(reader: Reader, block: Block, method: SgNode, name: str = "") -> Found:
    """Returns the gates of a method: those of the uses of its class or object."""
    for ancestor in method.ancestors()[:20]:
        kind = ancestor.kind()
        named = ancestor.field("name")
        if kind in {"class_declaration", "class"} and named is not None:
            owner = named.text()
            uses = _uses(reader, ancestor, owner, property_only=False)[:_MAX_USES]
            ways = [(_of_instance(reader, use.node) if name else None) or _use(reader, use, owner) for use in uses]
            return any_of(ways) if ways else _called(reader.index.exports.get(owner, owner))
        if kind == "variable_declarator" and named is not None:
            owner = named.text()[:100]
            return _called(reader.index.exports.get(owner, owner))
        if kind in {"export_statement", "class"}:
            return _called(DEFAULT)
        if kind in FUNCTIONS:
            return reader.callers(block, ancestor)._replace(handed_on=True)
        left = ancestor.field("left") if kind == "assignment_expression" else None
        if left is not None and left.text().startswith("module.exports"):
            return _called(name or DEFAULT)
        if kind in {"arguments", "call_expression"} and not name:
            return RUNS
    return _called(name) if name else RUNS


def _of_instance(reader: Reader, made: SgNode) -> Found | None:
    """Returns the gates of a method of the instance that the file exports, or None if a class isn't made for that."""
    call = made.parent()
    holder = call.parent() if call is not None and call.kind() == "new_expression" else None
    if holder is None:
        return None
    if holder.kind() == "export_statement":
        return _called(DEFAULT)
    name = holder.field("name") if holder.kind() == "variable_declarator" else None
    exported = reader.index.exports.get(name.text()[:100]) if name is not None else None
    return _called(exported) if exported else None


def _called(name: str) -> Found:
    return Found(callers=frozenset({name}))


def name_of(function: SgNode) -> tuple[str, bool]:
    """Returns the name by which a function is called, and whether that is one of a property."""
    if name := function.field("name"):
        if function.kind() == "function_expression" and _runs_in_place(function):
            return "", False
        return name.text(), function.kind() == "method_definition"
    parent = function.parent()
    while parent is not None and parent.kind() in _AROUND:
        callee = parent.field("function")
        if callee is not None and not _HANDS_ON.fullmatch(callee.text()[:60]):
            return "", False
        parent = parent.parent()
    return _name_in(parent) if parent is not None else ("", False)


def _name_in(parent: SgNode) -> tuple[str, bool]:
    """Returns the name that a parent gives to a function, and whether that is one of a property."""
    kind = parent.kind()
    if kind == "variable_declarator":
        name = parent.field("name")
        return (name.text(), False) if name is not None and name.kind() == "identifier" else ("", False)
    if kind in {"pair", "public_field_definition", "field_definition"}:
        key = parent.field("key") or parent.field("name") or parent.field("property")
        return (key.text().strip("\"'"), True) if key is not None else ("", False)
    left = parent.field("left") if kind == "assignment_expression" else None
    written = left.text()[:200] if left is not None else ""
    bare = _GLOBAL.sub("", written)
    if _WORD.fullmatch(bare) and not bare.startswith("on"):
        return bare, False
    return (written.rpartition(".")[2], True) if _PROPERTY.fullmatch(written) else ("", False)


def _runs_in_place(function: SgNode) -> bool:
    parent = function.parent()
    return parent is not None and parent.kind() in {
        "parenthesized_expression", "unary_expression", "arguments", "call_expression", "export_statement",
    }  # fmt: skip


def _uses(reader: Reader, function: SgNode, name: str, *, property_only: bool) -> list[Place]:
    """Returns the places outside of a function that use its name, without declarations."""
    declared = function.range()
    found = []
    for use in reader.index.uses.get(name, ())[: 10 * _MAX_USES]:
        kind = use.node.kind()
        at = use.node.range().start.index
        own = declared.start.index <= at < declared.end.index
        if own and use.block.root == function.get_root().root():
            continue
        if _declares(use.node):
            continue
        if (kind == "property_identifier") != property_only:
            if kind != "property_identifier" or not of_global(use.node):
                continue
        elif property_only and not _is_call_of_member(reader, use.node):
            continue
        found.append(use)
    return found


def calls_of(reader: Reader, function: SgNode) -> list[Place] | None:
    """Returns the calls of a function by its name. None if the file also uses it in another way."""
    name, owner = name_of(function)
    found = []
    for use in _uses(reader, function, name, property_only=owner)[:_MAX_USES] if name else ():
        callee = use.node.parent() if use.node.kind() == "property_identifier" else use.node
        call = callee.parent() if callee is not None else None
        if call is None or call.kind() != "call_expression" or call.field("function") != callee:
            return None
        found.append(Place(use.block, call))
    return found


def calls_on_page(reader: Reader, name: str) -> Iterator[Found]:
    """Yields the gates of each place that calls a function which the file doesn't define or import."""
    index = reader.index
    own = name in index.declarations or name in index.imports
    for place in index.uses.get(name, ())[:_MAX_USES]:
        if place.block.language not in SCRIPTS:
            continue
        parent = place.node.parent()
        bare = place.node.kind() == "identifier" and parent is not None and parent.kind() in {
            "call_expression", "arguments",
        }  # fmt: skip
        if (bare and not own) or (place.node.kind() == "property_identifier" and of_global(place.node)):
            yield reader.found(place.block, place.node)
    if not own:
        yield from _events(reader, name)


def given_to(reader: Reader, function: SgNode) -> list[SgNode]:
    """Returns the calls that a function is given to, where it is written or by its name."""
    name, _ = name_of(function)
    nodes = [use.node for use in _uses(reader, function, name, property_only=False)[:_MAX_USES]] if name else [function]
    found = []
    for node in nodes:
        given = next((it for it in node.ancestors()[:2] if it.kind() == "arguments"), None)
        call = given.parent() if given is not None else None
        if call is not None and call.kind() == "call_expression":
            found.append(call)
    return found


def of_global(node: SgNode) -> bool:
    """Returns whether a property is read from the global object."""
    parent = node.parent()
    on = parent.field("object") if parent is not None and parent.kind() == "member_expression" else None
    if parent is None or on is None or on.text() not in {"window", "globalThis", "self"}:
        return False
    around = parent.parent()
    return not (around is not None and around.kind() == "assignment_expression" and around.field("left") == parent)


def _is_call_of_member(reader: Reader, node: SgNode) -> bool:
    """Returns whether a property is used as a method of an object that isn't imported from elsewhere."""
    parent = node.parent()
    if parent is None or parent.kind() != "member_expression":
        return False
    on = parent.field("object")
    if on is None or on.text()[:100] in reader.index.imports:
        return False
    around = parent.parent()
    return not (around is not None and around.kind() == "assignment_expression" and around.field("left") == parent)


def _declares(use: SgNode) -> bool:
    parent = use.parent()
    if parent is None:
        return False
    kind = parent.kind()
    if kind in {
        "export_specifier",
        "export_statement",
        "import_specifier",
        "import_clause",
        "jsx_closing_element",
        "formal_parameters",
        "required_parameter",
    }:
        return True
    if kind in {
        "function_declaration",
        "function_definition",
        "class_declaration",
        "variable_declarator",
        "function_expression",
    }:
        return parent.field("name") == use
    if kind in {"pair", "method_definition"}:
        return (parent.field("key") or parent.field("name")) == use
    if kind == "assignment_expression" and parent.field("left") == use:
        return True
    left = parent.field("left") if kind == "assignment_expression" else None
    return left is not None and left.text().startswith(("module.exports", "exports."))


def _use(reader: Reader, use: Place, name: str) -> Found:
    found = reader.found(use.block, use.node)
    if found.closed:
        return found
    parent = use.node.parent()
    kind = parent.kind() if parent is not None else ""
    if kind in {"pair", "array", "return_statement", "object", "shorthand_property_identifier"} or (
        use.node.kind() == "shorthand_property_identifier"
    ):
        if _in_exports(use.node):
            return Found(found.implied, frozenset({reader.index.exports.get(name, name)}))
        return found._replace(handed_on=True)
    if kind == "arguments" and name[:1].isupper() and (exported := _exported_as(reader, use.node)):
        return Found(found.implied, frozenset({exported}))
    if kind == "assignment_expression" and parent is not None:
        left = parent.field("left")
        if left is not None and _GLOBAL.match(left.text()):
            return Found(found.implied, frozenset({left.text().partition(".")[2][:100]}))
    return found


def _exported_as(reader: Reader, given: SgNode) -> str | None:
    """Returns the export that a call makes of a component: `export default memo(Video)`, or None."""
    for ancestor in given.ancestors()[:MAX_ANCESTORS]:
        if ancestor.kind() not in _AROUND:
            name = ancestor.field("name") if ancestor.kind() == "variable_declarator" else None
            exports = reader.index.exports
            return exports.get(name.text()) if name else DEFAULT if ancestor.kind() == "export_statement" else None
    return None


def _in_exports(node: SgNode) -> bool:
    for ancestor in node.ancestors()[:6]:
        if ancestor.kind() == "assignment_expression":
            left = ancestor.field("left")
            return left is not None and "exports" in left.text()
        if ancestor.kind() == "export_statement":
            return True
    return False


def _events(reader: Reader, name: str) -> list[Found]:
    """Returns the gates of the attributes that call a function, one for each element."""
    if reader.language != "html":
        return []
    found = []
    for event in sorted(reader.index.events.get(name, ())):
        try:
            found.append(Found(events.implied_by_elements_event(event)))
        except Refused:
            found.append(RUNS)
    return found


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

"""Callbacks: which of them run only when the visitor agrees, or asks for something with a click."""

from __future__ import annotations

import re
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.gates import libraries, words
from openassent_analysis.gates.context import GIVEN, NOTHING, UNCLEAR, Implied, Reader, either_of
from openassent_analysis.gates.index import Declared, Place, arguments_of, callee_of
from openassent_analysis.gates.origins import in_project
from openassent_analysis.gating import Export
from openassent_analysis.reading import pattern_of, resource
from openassent_analysis.statements import FUNCTIONS

_FRAMEWORKS: Final = resource("frameworks")
_ASKS_FOR: Final = pattern_of(_FRAMEWORKS["asks_for"], re.IGNORECASE)
# Events of Bootstrap when a click opens an element.
_OPENS: Final = re.compile(r"shown?\.bs\.(?:modal|offcanvas|collapse|popover|dropdown)")
_PAGE: Final = pattern_of(_FRAMEWORKS["page"])
_LISTENS: Final = pattern_of(_FRAMEWORKS["listens"])
_CLICKS: Final = re.compile(r"(?:click|submit|dblclick|tap|change)")
_TOOLS_EVENT: Final = pattern_of(resource("consent-words")["event"], re.IGNORECASE)
_DISPATCHES: Final = resource("queries")["dispatches"]
# The rest of `$('.video a:first').trigger('click')`, behind the element's selector or name.
_CLICKED: Final = re.compile(
    r"""(?::[\w-]{1,20}(?:\(\d?\))?)?["'`)]{0,2}(?:\[\d\]|\.\w{2,5}\(\d?\))?"""
    r"""\.(?:click\(\s*\)|trigger\(\s*["']click["'])"""
)
_RUNS_ANYWAY: Final = pattern_of(_FRAMEWORKS["runs_anyway"])
_HANDLER: Final = re.compile(
    r"(?:on|handle|after|when|if|did|callback|cb|success)_?\w*|callback|enable|accept\w*|js|init", re.IGNORECASE
)
_ACTION: Final = re.compile(r"(?:on|handle)_?(?:click|press|tap|submit)\w*|(?:on)?click", re.IGNORECASE)
_LABEL: Final = re.compile(r">([^<>{}]{1,120})<")
_REFUSES_IN_LABEL: Final = pattern_of(resource("consent-words")["refusing_label"], re.IGNORECASE)
_SELECTOR: Final = re.compile(r"[.#\[a-z]")
_ON_ACCEPT: Final = re.compile(r"(?:on|handle|after|when|if|did|accept)", re.IGNORECASE)
_MAX_PLACES: Final = 20
_LONGEST_CLICK: Final = 400


class Refused(Exception):
    """The code runs when the visitor refuses."""


def implied_by_callback(reader: Reader, call: SgNode, argument: SgNode) -> Implied:
    """Returns the gate implied by a call that runs one of its arguments. Raises Refused."""
    function = call.field("function") or call.field("constructor")
    if function is None or function.kind() in FUNCTIONS:
        return NOTHING
    callee = function.text()[-300:]
    name = callee.rpartition(".")[2]
    export = reader.index.imports.get(callee.partition(".")[0])
    strings = [it.text()[1:-1][:200] for it in arguments_of(call) if it.kind() in {"string", "template_string"}]
    if words.LIBRARY.match(callee) or (export is not None and words.PACKAGE.fullmatch(export.module)):
        if words.refuses(name) or any(map(words.refuses, strings)):
            raise Refused
        # A handler in an object of options is judged by its key.
        return NOTHING if argument.kind() == "object" else GIVEN
    if _LISTENS.fullmatch(name) and strings:
        return _implied_by_event(reader, function, strings)
    if name == "then":
        return _implied_by_promise(reader, function, argument)
    if _CLICKS.fullmatch(name) and function.kind() == "member_expression":
        return _asked_for(function, [])
    return NOTHING if _RUNS_ANYWAY.fullmatch(name) else _implied_by_name(reader, call, name, export, argument)


def _implied_by_name(reader: Reader, call: SgNode, name: str, export: Export | None, argument: SgNode) -> Implied:
    """Returns the gate implied by a function of no consent library that runs its argument. Raises Refused."""
    whole = argument.kind() == "object"
    if not whole and words.refuses(name) and words.ACCEPTS.search(words.REFUSAL.sub("accept", name)):
        raise Refused
    if export is not None and in_project(export.module):
        likely = words.accepts(name) or words.strength(name) > 0
        return Implied(providers=frozenset({Export(export.module, export.name)}), unclear=likely)
    declared = next(iter(reader.index.declarations.get(callee_of(call), ())), None)
    if declared is not None and declared.value is not None:
        return _implied_by_helper(reader, declared, arguments_of(call), argument)
    return GIVEN if words.accepts(name) and not whole else NOTHING


def _implied_by_event(reader: Reader, function: SgNode, strings: list[str]) -> Implied:
    event = strings[0]
    if any(_ASKS_FOR.fullmatch(part.partition(".")[0]) for part in event.split()):
        asked = _asked_for(function, strings[1:])
        clicks = _clicks(reader, function) if asked is GIVEN else []
        return either_of(reader.found(*place).implied for place in clicks) or NOTHING if clicks else asked
    if _OPENS.fullmatch(event):
        return GIVEN
    if not event.strip():
        return NOTHING
    if words.refuses(event):
        raise Refused
    if places := _dispatches(reader, event):
        return either_of(reader.found(*place).implied for place in places) or NOTHING
    if _TOOLS_EVENT.search(event):
        return GIVEN
    if words.KEY.search(event) or words.strength(event) > 1:
        return GIVEN if words.accepts(event) else UNCLEAR
    target = function.field("object")
    return GIVEN if target is not None and words.strength(target.text()) > 1 else NOTHING


def _asked_for(function: SgNode, selectors: list[str]) -> Implied:
    """Returns that the visitor asks for something by an event of one element, but not of the whole page."""
    target = function.field("object")
    text = target.text()[:300] if target is not None else ""
    if _PAGE.fullmatch(text) and not any(_SELECTOR.match(it) for it in selectors):
        return NOTHING
    if words.refuses(" ".join([text, *selectors])):
        raise Refused
    return GIVEN


def _clicks(reader: Reader, function: SgNode) -> list[Place]:
    """Returns the places at which code itself clicks the element that a handler belongs to."""
    target = function.field("object")
    written = target.text()[:300].rstrip(")\"'`") if target is not None else ""
    if not written or not reader.index.clicks:
        return []
    return [place for place in reader.index.clicks if _clicks_on(place.node.text(), written)][:_MAX_PLACES]


def _clicks_on(call: str, element: str) -> bool:
    return call.startswith(element) and _CLICKED.match(call[:_LONGEST_CLICK], len(element)) is not None


def _dispatches(reader: Reader, event: str) -> list[Place]:
    found = []
    for block in reader.index.scripts:
        if block.language == "python" or event not in block.text:
            continue
        for node in block.root.find_all(_DISPATCHES)[:200]:
            first = next(iter(arguments_of(node)), None)
            if first is not None and first.text()[1:-1] == event:
                found.append(Place(block, node))
    return found[:_MAX_PLACES]


def _implied_by_promise(reader: Reader, function: SgNode, argument: SgNode) -> Implied:
    promise = function.field("object")
    if promise is None or argument.kind() not in FUNCTIONS or reader.index.parameters(argument):
        return NOTHING
    text = promise.text()[:300]
    return GIVEN if "import(" not in text and words.accepts(text) and words.strength(text) > 1 else NOTHING


def _implied_by_helper(reader: Reader, declared: Declared, given: list[SgNode], argument: SgNode) -> Implied:
    """Returns the gate under which a function of this file calls the parameter that receives the argument."""
    helper = declared.value
    parameters = helper.field("parameters") if helper is not None and helper.kind() in FUNCTIONS else None
    if helper is None or parameters is None:
        return NOTHING
    names = [it for it in parameters.children() if it.is_named()]
    position = next((index for index, it in enumerate(given) if it == argument), len(names))
    if position >= len(names):
        return NOTHING
    parameter = names[position].field("pattern") or names[position]
    uses = reader.index.uses_in(declared.block, helper, parameter.text(), _MAX_PLACES * 2)
    found = either_of(reader.found(declared.block, it, helper).implied for it in uses if it != parameter)
    name = declared.node.field("name")
    if found is None and name is not None and words.accepts(name.text()) and words.strength(name.text()) > 1:
        return UNCLEAR
    return found or NOTHING


def implied_by_key(reader: Reader, pair: SgNode, child: SgNode) -> Implied:
    """Returns the gate implied by a call of an option, attribute, or method. Raises Refused."""
    key = pair.child(0) if pair.kind() != "method_definition" else pair.field("name")
    if key is None or key == child:
        return NOTHING
    name = key.text().strip("\"'")[:100]
    if not _HANDLER.fullmatch(name) and not words.accepts(name):
        return NOTHING
    if words.refuses(name):
        raise Refused
    if _ACTION.fullmatch(name):
        if pair.kind() == "jsx_attribute" and _label_refuses(pair):
            raise Refused
        return GIVEN
    if pair.kind() == "method_definition":
        return NOTHING
    if pair.kind() == "jsx_attribute":
        if _ASKS_FOR.fullmatch(name):
            return GIVEN
        return GIVEN if words.accepts(name) else NOTHING
    if words.accepts(name) and _ON_ACCEPT.match(name):
        return GIVEN
    return GIVEN if _belongs_to_library(reader, pair) and not libraries.runs_before_answer(name) else NOTHING


def _label_refuses(attribute: SgNode) -> bool:
    """Returns whether a handler belongs to a button by which the visitor refuses."""
    if words.refuses(attribute.text()[:300]):
        return True
    tag = attribute.parent()
    element = tag.parent() if tag is not None and tag.kind() == "jsx_opening_element" else None
    if element is None:
        return False
    label = " ".join(_LABEL.findall(element.text()[:2000]))
    return bool(_REFUSES_IN_LABEL.search(label))


def _belongs_to_library(reader: Reader, pair: SgNode) -> bool:
    """Returns whether an option is one of a consent library's configuration."""
    for ancestor in pair.ancestors()[:20]:
        kind = ancestor.kind()
        name = None
        if kind in {"call_expression", "new_expression"}:
            name = ancestor.field("function") or ancestor.field("constructor")
        elif kind == "variable_declarator":
            name = ancestor.field("name")
        elif kind == "assignment_expression":
            name = ancestor.field("left")
        elif kind in {"jsx_self_closing_element", "jsx_opening_element"}:
            name = ancestor.field("name")
        if name is None:
            continue
        text = name.text()[:200]
        export = reader.index.imports.get(text.partition(".")[0])
        if words.LIBRARY.match(text) or (export is not None and words.PACKAGE.fullmatch(export.module)):
            return True
    return False


def implied_by_assignment(assignment: SgNode, child: SgNode) -> Implied:
    """Returns the gate implied by running an assigned function. Raises Refused."""
    left = assignment.field("left")
    if left is None or left == child:
        return NOTHING
    target, _, name = left.text()[-200:].rpartition(".")
    if words.refuses(name) and name.startswith("on"):
        raise Refused
    if name in {"onclick", "onsubmit", "onchange"} and not _PAGE.fullmatch(target):
        if words.refuses(target):
            raise Refused
        return GIVEN
    if words.LIBRARY.match(left.text()[:200]) and "OptanonWrapper" not in left.text()[:200]:
        return GIVEN
    return GIVEN if words.accepts(name) and child.kind() in FUNCTIONS else NOTHING


def implied_by_elements_event(event: str) -> Implied:
    """Returns the gate implied by code in an element's event attribute. Raises Refused."""
    if words.refuses(event):
        raise Refused
    return GIVEN if _ASKS_FOR.fullmatch(event) or words.accepts(event) else NOTHING

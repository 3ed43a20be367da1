"""Decides the meaning of a name, property, or call for the visitor's choice, by the origin of its value."""

from __future__ import annotations

import re
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.gates import states, words
from openassent_analysis.gates.context import (
    ALWAYS,
    CHOICE,
    FLAG,
    NEVER,
    NOTHING,
    OTHER,
    STORED,
    Implied,
    Kind,
    Meaning,
    Reader,
    both,
    either,
)
from openassent_analysis.gates.index import (
    MAX_TEXT,
    Declared,
    arguments_of,
    callee_of,
    constant_of,
    is_constant,
    returns_of,
)
from openassent_analysis.gates.texts import by_name
from openassent_analysis.gating import WHOLE, Export
from openassent_analysis.reading import pattern_of, resource
from openassent_analysis.statements import FUNCTIONS

_STORAGE: Final = pattern_of(resource("consent-words")["stores"])
_STORAGE_OBJECT: Final = re.compile(
    r"[\w$.]{0,60}?(?:(?:local|session)Storage|[cC]ookies?|COOKIES|cookieStore)(?:\(\))?"
)
# Functions that return all cookies, by their names.
_ALL_COOKIES: Final = re.compile(r"[cC]ookies?\.(?:getAll|get|all)$|(?:^|\.)parseCookies$")
_PASSES_ON: Final = pattern_of(resource("frameworks")["passes_on"])
_STATES: Final = frozenset(resource("frameworks")["states"].splitlines())
_PACKAGE: Final = pattern_of(resource("frameworks")["package"])
_THIS: Final = "this."
_COOKIE_KEY: Final = re.compile(r"""["'`/](?:\^|;|\s)*([\w-]{1,60})=""")
_LISTENS: Final = re.compile(r"(?:addEventListener|(?:^|\.)on)$")
_WATCHES: Final = frozenset({"watch", "this.$watch"})
_MAX_MEMBERS: Final = 200
_MAX_CASTS: Final = 4
_QUESTION: Final = re.compile(r"(?:is|has|can|should|may)[A-Z_]")
# The folder from which Nuxt imports by itself.
_COMPOSABLES: Final = "composables/"
_COMPOSABLE: Final = re.compile(r"use[A-Z]\w{1,60}")
_PROJECT: Final = re.compile(r"[./~#$]|@/|@\w+/\w+/")
_NOT_CHOICE: Final = pattern_of(resource("consent-words")["not_choice"], re.IGNORECASE)
ENVIRONMENT: Final = re.compile(r"process\.env|import\.meta|(?<![\w.])(?:env|ENV|\$env|config|siteConfig|Config)[.\[(]")


def of_name(reader: Reader, block: Block, node: SgNode) -> Meaning:
    name = node.text()
    if name == "undefined":
        return NEVER
    if function := reader.index.parameter(node, name):
        return _parameter(reader, block, function, name)
    bare = name.removeprefix("$") if len(name) > 1 else name
    declared = reader.index.declarations.get(name) or reader.index.declarations.get(bare)
    if declared:
        nearest = _nearest(declared, node)
        if nearest.value is None or name not in reader.index.imports:
            return declared_as(reader, nearest, bare)
    if export := reader.index.imports.get(name) or reader.index.imports.get(bare):
        return imported(export)
    return by_name(name)


def _nearest(declared: list[Declared], node: SgNode) -> Declared:
    """Returns the declaration in the innermost function around a node, or the first one."""
    if len(declared) == 1:
        return declared[0]
    functions = [ancestor for ancestor in node.ancestors()[:50] if ancestor.kind() in FUNCTIONS]
    for function in functions:
        for entry in declared[:20]:
            around = next((it for it in entry.node.ancestors()[:50] if it.kind() in FUNCTIONS), None)
            if around is not None and around == function:
                return entry
    return declared[0]


def imported(export: Export, strength_of: str = "") -> Meaning:
    """Returns the meaning of a value that another file or a package exports."""
    if words.PACKAGE.fullmatch(export.module):
        return CHOICE
    name = strength_of or (export.name if export.name not in {WHOLE, "default"} else export.module.rpartition("/")[2])
    if not in_project(export.module):
        return by_name(name)
    if words.refuses(name):
        return OTHER
    unclear = words.strength(name) > 0
    flag = by_name(name).kind is Kind.FLAG or bool(_QUESTION.match(name))
    return Meaning(Implied(providers=frozenset({export}), unclear=unclear), NOTHING, Kind.FLAG if flag else Kind.CHOICE)


def in_project(module: str) -> bool:
    """Returns whether a module may be a file of the project, and isn't a package."""
    return bool(_PROJECT.match(module)) or not _PACKAGE.fullmatch(module)


def _parameter(reader: Reader, block: Block, function: SgNode, name: str) -> Meaning:
    """Returns the meaning of a parameter: of the value that a promise or store passes, or by its name."""
    given = function.parent()
    call = given.parent() if given is not None and given.kind() == "arguments" else None
    callee = call.field("function") if call is not None else None
    on = callee.field("object") if callee is not None and callee.kind() == "member_expression" else None
    if call is not None and callee is not None and callee.text() in _WATCHES:
        on = _watched(call, function)
    if on is not None:
        found = reader.meaning(block, on)
        if found.kind in {Kind.CHOICE, Kind.FLAG, Kind.STORED}:
            return found
    named = by_name(name)
    return named if named != OTHER else states.meaning_of_parameter(reader, function, name)


def _watched(call: SgNode, callback: SgNode) -> SgNode | None:
    """Returns the value that a call watches for a callback: `watch(() => store.choice, callback)`."""
    watched = next(iter(arguments_of(call)), None)
    if watched is None or watched == callback:
        return None
    return next(iter(returns_of(watched)), None) if watched.kind() in FUNCTIONS else watched


def declared_as(reader: Reader, declared: Declared, name: str) -> Meaning:
    """Returns the meaning of a declared name, by its declaration and the places that set it."""
    block, value, part = declared.block, declared.value, declared.part
    if value is not None and value.kind() in {"call_expression", "new_expression"}:
        callee = callee_of(value)
        if callee.rpartition(".")[2].partition("<")[0] == "createContext":
            return states.meaning_of_context(reader, name)
        if callee.rpartition(".")[2].partition("<")[0] in _STATES and part in {"", "0"}:
            return states.meaning_of_state(reader, declared, name)
    if value is None or (not part and name in reader.index.assignments and value.kind() not in FUNCTIONS):
        return states.meaning_of_state(reader, declared, name)
    if value.kind() in FUNCTIONS or value.kind() == "class_declaration":
        return OTHER
    if part and not part.isdigit():
        found = property_of(reader, block, value, part)
        if found is not None:
            return found
        return _part(reader.meaning(block, value), part, name)
    found = reader.meaning(block, value)
    if (
        found == OTHER
        and value.kind() in {"call_expression", "await_expression"}
        and not ENVIRONMENT.search(value.text()[:200])
    ):
        return by_name(name)
    return found


def _part(whole: Meaning, part: str, name: str) -> Meaning:
    """Returns the meaning of a property of a value."""
    if whole.kind is Kind.STORED:
        return CHOICE if words.CATEGORY.search(part) or words.KEY.search(part) else whole
    if whole.kind is not Kind.OTHER:
        if words.refuses(part) or _NOT_CHOICE.search(part):
            return OTHER
        return whole if whole.true.given or words.strength(name) < 2 else _likely(whole, name)
    return by_name(name) if not part.isdigit() else OTHER


def _likely(whole: Meaning, name: str) -> Meaning:
    """Returns the meaning of a property of another file's value, if the property's name suggests consent."""
    if any(it.module.startswith(_COMPOSABLES) for it in whole.true.providers):
        return by_name(name)
    return whole._replace(true=whole.true._replace(unclear=True))


def of_equality(reader: Reader, value: SgNode, literal: SgNode) -> Meaning:
    """Returns the meaning of a comparison with a literal, if the value is a state that the file sets to literals."""
    declared = (
        next(iter(reader.index.declarations.get(value.text(), ())), None) if value.kind() == "identifier" else None
    )
    if declared is None or declared.value is None or declared.value.kind() != "call_expression":
        return OTHER
    if callee_of(declared.value).rpartition(".")[2].partition("<")[0] not in _STATES or not is_constant(literal):
        return OTHER
    return states.meaning_if_equal(reader, declared, value.text(), literal)


def property_of(reader: Reader, block: Block, node: SgNode, name: str) -> Meaning | None:
    """Returns the meaning of a property of an object that the file writes out, or None."""
    kind = node.kind()
    if kind in {"parenthesized_expression", "await_expression", "as_expression"}:
        inner = node.child(1 if kind != "as_expression" else 0)
        return property_of(reader, block, inner, name) if inner is not None else None
    if kind == "object":
        return _property(reader, block, node, name)
    written = node.field("function") if kind == "call_expression" else node
    if written is None or written.kind() != "identifier" or written.text() in reader.index.assignments:
        return None
    declared = next(iter(reader.index.declarations.get(written.text(), ())), None)
    value = declared.value if declared is not None else None
    if declared is None or value is None:
        return None
    if value.kind() == "object" and written == node:
        return _property(reader, declared.block, value, name)
    if value.kind() in FUNCTIONS and written != node:
        for given in returns_of(value):
            if given.kind() == "object" and (found := _property(reader, declared.block, given, name)):
                return found
    return None


def _property(reader: Reader, block: Block, properties: SgNode, name: str) -> Meaning | None:
    for pair in properties.children():
        if pair.kind() == "shorthand_property_identifier" and pair.text() == name:
            return reader.meaning(block, pair)
        key, value = pair.field("key"), pair.field("value")
        if key is not None and value is not None and key.text().strip("\"'") == name:
            return reader.meaning(block, value)
    return None


def _of_instance(reader: Reader, block: Block, node: SgNode, path: str) -> Meaning | None:
    """Returns the meaning of `this.name`, a method of the class, or of `this.service.name`. None if it is OTHER."""
    first, _, rest = path.partition(".")
    if rest:
        export = reader.index.imports.get(reader.index.services.get(first, ""))
        if export is None or "." in rest or not in_project(export.module) or by_name(rest).true.given:
            return None
        found = imported(Export(export.module, f"{export.name}.{rest}"))
        return found if found != OTHER else None
    if (method := _method(node, first)) is not None:
        found = returned(reader, block, method)
    else:
        found = states.meaning_of_field(reader, first)
    return found if found != OTHER else None


def _method(node: SgNode, wanted: str) -> SgNode | None:
    """Returns the method of the class or the object around a node."""
    for around in node.ancestors()[:50]:
        for method in around.children()[:_MAX_MEMBERS] if around.kind() in {"class_body", "object"} else ():
            name = method.field("name") if method.kind() == "method_definition" else None
            if name is not None and name.text() == wanted:
                return method
    return None


def _of_event(reader: Reader, on: SgNode) -> Meaning | None:
    """Returns the meaning of the value that an event about the choice passes to listeners, or None."""
    inner = on
    for _ in range(_MAX_CASTS):  # (event as CustomEvent)
        if inner.kind() in {"parenthesized_expression", "as_expression"}:
            inner = inner.child(1 if inner.kind() == "parenthesized_expression" else 0) or inner
    listener = reader.index.parameter(inner, inner.text()) if inner.kind() == "identifier" else None
    for call in reader.given_to(listener) if listener is not None else ():
        event = next(iter(arguments_of(call)), None)
        if event is None or not _LISTENS.search(callee_of(call)):
            continue
        export = reader.index.imports.get(event.text())
        if words.is_key(f"{constant_of(reader.index, event)} {export.module if export else ''}"):
            return CHOICE
    return None


def of_member(reader: Reader, block: Block, node: SgNode) -> Meaning:
    text = node.text()[:MAX_TEXT]
    if ENVIRONMENT.search(text):
        return OTHER
    if words.LIBRARY.match(text):
        return CHOICE
    on = node.field("object")
    key = node.field("property") or node.field("index")
    if on is None or key is None:
        return OTHER
    name = key.text().strip("\"'`")
    if text.startswith(_THIS):
        own = _of_instance(reader, block, node, text.removeprefix(_THIS))
        if own is not None:
            return own
    if _STORAGE_OBJECT.fullmatch(on.text()[:MAX_TEXT]):
        return _stored(reader, name)
    found = property_of(reader, block, on, name)
    if found is None and name == "detail":
        found = _of_event(reader, on)
    if found is not None:
        return found
    whole = reader.meaning(block, on)
    if whole in {ALWAYS, NEVER} and on.kind() == "identifier":
        return OTHER if not words.strength(name) else by_name(text)
    return _part(whole, name, text)


def of_call(reader: Reader, block: Block, call: SgNode) -> Meaning:
    callee, arguments = callee_of(call), arguments_of(call)
    if ENVIRONMENT.search(callee):
        return OTHER
    if words.LIBRARY.match(callee):
        return _of_library(callee)
    text = call.text()[:MAX_TEXT]
    if "document.cookie" in text:
        if words.is_key(text):
            return CHOICE
        return OTHER if words.refuses(text) else _of_cookie(reader, text)
    if arguments and _PASSES_ON.fullmatch(callee):
        return reader.meaning(block, arguments[0])
    if not arguments and _ALL_COOKIES.search(callee):
        return STORED
    reads_storage = bool(arguments) and bool(_STORAGE.search(callee[-60:]))
    own = _of_own_function(reader, callee, arguments)
    if own is None and callee.startswith(_THIS):
        own = _of_instance(reader, block, call, callee.removeprefix(_THIS))
    if own is not None and (own != OTHER or not reads_storage):
        return own
    return _keyed(reader, arguments, STORED) if reads_storage else _of_callee(reader, block, call, callee)


def _of_library(callee: str) -> Meaning:
    if words.refuses(callee.rpartition(".")[2]):
        return OTHER
    return FLAG if "onsent" in callee[-40:] or "accepted" in callee else CHOICE


def _of_own_function(reader: Reader, name: str, arguments: list[SgNode]) -> Meaning | None:
    """Returns the meaning of a call of a function of this file, or None."""
    declared = next(iter(reader.index.declarations.get(name, ())), None)
    if declared is None or declared.value is None or declared.value.kind() not in FUNCTIONS:
        return None
    found = returned(reader, declared.block, declared.value)
    return _keyed(reader, arguments, found) if found.kind is Kind.STORED and arguments else found


def _of_callee(reader: Reader, block: Block, call: SgNode, callee: str) -> Meaning:
    """Returns the meaning of a call by its function's name, or by the object of its method."""
    function = call.field("function")
    if function is None:
        return by_name(callee)
    on = function.field("object")
    if on is not None and (found := reader.meaning(block, on)).kind is not Kind.OTHER:
        method = callee.rpartition(".")[2]
        return _part(found, method, method)
    if function.kind() == "identifier" and (given := reader.index.declarations.get(callee)) and given[0].part:
        return reader.meaning(block, function)  # const { allows } = useConsent()
    export = reader.index.imports.get(callee) if function.kind() == "identifier" else None
    named = by_name(callee)
    if export is None and named == OTHER and _COMPOSABLE.fullmatch(callee):
        export = Export(f"{_COMPOSABLES}{callee}", callee)
    return imported(export) if export else named


def _of_cookie(reader: Reader, text: str) -> Meaning:
    """Returns the meaning of a call that looks for a cookie in all of them."""
    key = _COOKIE_KEY.search(text)
    return _stored(reader, key[1]) if key else STORED


def _keyed(reader: Reader, arguments: list[SgNode], otherwise: Meaning) -> Meaning:
    key = constant_of(reader.index, arguments[0]) if arguments[0].kind() != "array" else arguments[0].text()
    found = CHOICE if _names_category(arguments[0]) else _stored(reader, key[:MAX_TEXT])
    return found if found.kind is not Kind.STORED else otherwise


def _names_category(argument: SgNode) -> bool:
    return argument.kind() == "string" and bool(words.CATEGORY.fullmatch(argument.text()[1:-1]))


def _stored(reader: Reader, key: str) -> Meaning:
    """Returns the meaning of a value in storage: by its key, or by the place that writes it."""
    if words.refuses(key):
        return OTHER
    if words.is_key(key):
        return CHOICE
    return CHOICE if states.written_with_consent(reader, key) else STORED


def returned(reader: Reader, block: Block, function: SgNode) -> Meaning:
    """Returns the meaning of a function's result."""
    body = function.field("body")
    if body is None:
        return OTHER
    if body.kind() != "statement_block":
        return reader.meaning(block, body)
    found: Meaning | None = None
    for value in returns_of(function):
        place, one = reader.found(block, value, function).implied, reader.meaning(block, value)
        kind = one.kind if one.kind is not Kind.OTHER else Kind.FLAG
        one = Meaning(both(place, one.true), both(place, one.false), kind)
        found = _either(found, one) if found is not None else one
    return found if found is not None and found != Meaning(kind=Kind.FLAG) else OTHER


def _either(one: Meaning, other: Meaning) -> Meaning:
    kind = Kind.CHOICE if Kind.CHOICE in {one.kind, other.kind} else one.kind
    return Meaning(either(one.true, other.true), either(one.false, other.false), kind)

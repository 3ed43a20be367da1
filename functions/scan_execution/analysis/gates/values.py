"""Decides what an expression says about the visitor's choice, by where its value comes from."""

from __future__ import annotations

import re
from typing import Final

from ast_grep_py import SgNode

from scan_execution.analysis.gates import states, words
from scan_execution.analysis.gates.context import Reader
from scan_execution.analysis.gates.implied import (
    ALWAYS,
    CHOICE,
    FLAG,
    MAYBE,
    NEVER,
    NOTHING,
    OTHER,
    STORED,
    Implied,
    Kind,
    Meaning,
    both,
    compared,
    conjunction,
    disjunction,
    either,
    negated,
    selection,
)
from scan_execution.analysis.gates.index import FUNCTIONS, Declared
from scan_execution.analysis.gates.texts import by_name, meaning_of_text
from scan_execution.analysis.gating import WHOLE, Export
from scan_execution.analysis.sources import Block

_WRAPPERS: Final = frozenset({
    "parenthesized_expression", "await_expression", "as_expression", "non_null_expression", "satisfies_expression",
    "expression_statement", "program", "sequence_expression", "jsx_expression", "type_assertion",
})  # fmt: skip
_EQUAL: Final = frozenset({"==", "==="})
_DIFFERENT: Final = frozenset({"!=", "!=="})
_STORAGE: Final = re.compile(
    r"(?:local|session)Storage|AsyncStorage|SecureStore|MMKV|(?<![a-z])[cC]ookies?(?:Store|Storage)?\b|(?:get|read|use|load|fetch)_?Cookies?|use\w*Storage\w*"
    r"|[sS]torage\b|getItem\b|\$\.cookie|usePersist\w*|get_?cookie"
)
_PASSES_ON: Final = re.compile(
    r"(?:JSON\.parse|Boolean|String|Number|parseInt|decodeURIComponent|unescape|atob|Object\.(?:values|keys|entries|assign|freeze)"
    r"|Array\.(?:from|isArray)|toValue|unref|toRef|get|computed|useMemo|useCallback|cache|createMemo|useContext|useStore|inject|use|Promise\.resolve|structuredClone|new Set|memo)"
)
_STATES: Final = frozenset({
    "useState", "createSignal", "useSignal", "signal", "ref", "shallowRef", "useRef", "writable", "BehaviorSubject",
    "atom", "observable", "$state", "reactive",
})  # fmt: skip
_PACKAGE: Final = re.compile(
    r"[\w.-]+|@[\w.-]+/[\w.-]+|(?:node|next|react|vue|nuxt|svelte|@angular|@nuxt|@sveltejs|@vueuse|firebase|@remix-run|@tanstack|gatsby|lodash|rxjs|@ionic|expo)/.*"
)
_PROJECT: Final = re.compile(r"[./~#$]|@/|@\w+/\w+/")
_SURE: Final = re.compile(r"accept|agree|grant|consent|opt[-_]?in|allow", re.IGNORECASE)
# Properties of a library's or hook's answer that aren't the choice.
_NOT_CHOICE: Final = re.compile(
    r"loading|ready|open|visible|show|hide|banner|modal|dialog|initiali[sz]ed|pending|theme|locale|language|error|timestamp|setConsent|save|update|accept(?:All)?$|isMounted",
    re.IGNORECASE,
)
_ENVIRONMENT: Final = re.compile(
    r"process\.env|import\.meta|(?<![\w.])(?:env|ENV|\$env|config|siteConfig|Config)[.\[(]"
)
_EMPTY: Final = frozenset({"", "{}", "[]", "null", "false", "undefined"})
_MAX_PARTS: Final = 60
_MAX_TEXT: Final = 400
_MAX_RETURNS: Final = 20


def meaning(reader: Reader, block: Block, node: SgNode) -> Meaning:
    kind = node.kind()
    if block.language == "python":
        return meaning_of_text(node.text())
    if kind in _WRAPPERS:
        inner = next(
            (
                child
                for child in reversed(node.children())
                if child.is_named() and child.kind() != "comment" and not _is_type(child)
            ),
            None,
        )
        if kind in {"as_expression", "non_null_expression", "satisfies_expression"}:
            inner = node.child(0)
        return reader.meaning(block, inner) if inner is not None else OTHER
    if kind == "unary_expression":
        operand = node.field("argument")
        if operand is None or not node.text().startswith("!"):
            return OTHER
        return negated(reader.meaning(block, operand))
    if kind == "binary_expression":
        return _binary(reader, block, node)
    if kind == "ternary_expression":
        parts = [node.field(name) for name in ("condition", "consequence", "alternative")]
        test, one, other = (reader.meaning(block, part) if part is not None else OTHER for part in parts)
        return selection(test, one, other)
    if kind == "assignment_expression":
        right = node.field("right")
        return reader.meaning(block, right) if right is not None else OTHER
    if kind in FUNCTIONS:
        return returned(reader, block, node)
    if kind == "identifier" or kind == "shorthand_property_identifier":
        return _name(reader, block, node)
    if kind in {"member_expression", "subscript_expression"}:
        return _member(reader, block, node)
    if kind in {"call_expression", "new_expression"}:
        return _call(reader, block, node)
    if kind == "object":
        return _object(reader, block, node)
    return _literal(node)


def _object(reader: Reader, block: Block, node: SgNode) -> Meaning:
    """Returns the meaning of an object by what it takes from others, or by the categories that it allows."""
    for part in node.children()[:_MAX_PARTS]:
        inner = part.child(1) if part.kind() == "spread_element" else None
        if inner is not None and (found := reader.meaning(block, inner)).kind is not Kind.OTHER:
            return found
        key, value = part.field("key"), part.field("value")
        if key is not None and value is not None and value.kind() == "true":
            name = key.text().strip("\"'")
            if words.CATEGORY.fullmatch(name) or words.strength(name) > 0:
                return ALWAYS
    return NEVER


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
        return ALWAYS if len(node.text()) > 2 else NEVER
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
    value, literal = (right, left) if _is_constant(left) else (left, right)
    found = reader.meaning(block, value)
    written = _constant(reader, literal)
    if ".indexOf" in value.text()[-200:] and written == "-1":
        return negated(found._replace(false=NOTHING))
    if found.kind is Kind.STORED:
        if written in {"true", "1"}:
            return STORED
        return FLAG if _SURE.search(written) and words.says_yes(written) else OTHER
    if found.kind is Kind.OTHER:
        return _agreed(reader, value, written)
    falsy = literal.kind() != "string" and written in {"false", "0", ""}
    return compared(found, positive=words.says_yes(written), falsy=falsy)


def _agreed(reader: Reader, value: SgNode, written: str) -> Meaning:
    """Returns the meaning of comparing an unknown value with a word for consent, such as `status === 'allow'`."""
    if not _SURE.match(written) or not words.says_yes(written) or _ENVIRONMENT.search(value.text()[:_MAX_TEXT]):
        return OTHER
    return FLAG if any(words.PACKAGE.fullmatch(it.module) for it in reader.index.imports.values()) else MAYBE


def _is_constant(node: SgNode) -> bool:
    return node.kind() in {"string", "number", "true", "false", "null", "undefined"}


def _constant(reader: Reader, node: SgNode) -> str:
    """Returns the value of a literal, of a name that the file sets to one, or the last word of another name."""
    if node.kind() == "identifier":
        for declared in reader.index.declarations.get(node.text(), ())[:1]:
            if declared.value is not None and _is_constant(declared.value):
                return declared.value.text().strip("\"'")
    text = node.text()[:_MAX_TEXT]
    if node.kind() == "member_expression" and (value := reader.index.strings.get(text.rpartition(".")[2])):
        return value
    return text.strip("\"'`") if node.kind() in {"string", "template_string"} else text.rpartition(".")[2]


def _name(reader: Reader, block: Block, node: SgNode) -> Meaning:
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
            return _declared(reader, nearest, bare)
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
    flag = by_name(name).kind is Kind.FLAG or bool(re.match(r"(?:is|has|can|should|may)[A-Z_]", name))
    return Meaning(Implied(providers=frozenset({export}), unclear=unclear), NOTHING, Kind.FLAG if flag else Kind.CHOICE)


def in_project(module: str) -> bool:
    """Returns whether a module may be a file of the project, and isn't a package."""
    return bool(_PROJECT.match(module)) or not _PACKAGE.fullmatch(module)


def _parameter(reader: Reader, block: Block, function: SgNode, name: str) -> Meaning:
    """Returns the meaning of a parameter: of what a promise or store gives to its callback, or by its name."""
    given = function.parent()
    call = given.parent() if given is not None and given.kind() == "arguments" else None
    callee = call.field("function") if call is not None else None
    if callee is not None and callee.kind() == "member_expression" and (on := callee.field("object")):
        found = reader.meaning(block, on)
        if found.kind in {Kind.CHOICE, Kind.FLAG, Kind.STORED}:
            return found
    return by_name(name)


def _declared(reader: Reader, declared: Declared, name: str) -> Meaning:
    block, value, part = declared.block, declared.value, declared.part
    if value is not None and value.kind() in {"call_expression", "new_expression"}:
        callee = _callee(value)
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
        and not _ENVIRONMENT.search(value.text()[:200])
    ):
        return by_name(name)
    return found


def _part(whole: Meaning, part: str, name: str) -> Meaning:
    """Returns the meaning of a property of a value."""
    if whole.kind is Kind.STORED:
        return CHOICE if words.CATEGORY.search(part) or words.KEY.search(part) else whole
    if whole.kind is not Kind.OTHER:
        return OTHER if words.refuses(part) or _NOT_CHOICE.search(part) else whole
    return by_name(name) if not part.isdigit() else OTHER


def property_of(reader: Reader, block: Block, node: SgNode, name: str) -> Meaning | None:
    """Returns the meaning of a property of an object that the file writes out, or None."""
    kind = node.kind()
    if kind in {"parenthesized_expression", "await_expression", "as_expression"}:
        inner = node.child(1 if kind != "as_expression" else 0)
        return property_of(reader, block, inner, name) if inner is not None else None
    if kind == "object":
        for pair in node.children():
            if pair.kind() == "shorthand_property_identifier" and pair.text() == name:
                return reader.meaning(block, pair)
            key, value = pair.field("key"), pair.field("value")
            if key is not None and value is not None and key.text().strip("\"'") == name:
                return reader.meaning(block, value)
        return None
    if kind == "identifier":
        for declared in reader.index.declarations.get(node.text(), ())[:1]:
            if (
                declared.value is not None
                and declared.value.kind() == "object"
                and node.text() not in reader.index.assignments
            ):
                return property_of(reader, declared.block, declared.value, name)
        return None
    if kind == "call_expression" and (callee := node.field("function")) and callee.kind() == "identifier":
        for declared in reader.index.declarations.get(callee.text(), ())[:1]:
            if declared.value is not None and declared.value.kind() in FUNCTIONS:
                for value in returns_of(declared.value):
                    if value.kind() == "object" and (found := property_of(reader, declared.block, value, name)):
                        return found
    return None


def _member(reader: Reader, block: Block, node: SgNode) -> Meaning:
    text = node.text()[:_MAX_TEXT]
    if _ENVIRONMENT.search(text):
        return OTHER
    if words.LIBRARY.match(text):
        return CHOICE
    on = node.field("object")
    key = node.field("property") or node.field("index")
    if on is None or key is None:
        return OTHER
    name = key.text().strip("\"'`")
    if _STORAGE.search(on.text()[-60:]):
        return _stored(reader, name)
    found = property_of(reader, block, on, name)
    if found is not None:
        return found
    whole = reader.meaning(block, on)
    if whole in {ALWAYS, NEVER} and on.kind() == "identifier":
        return OTHER if not words.strength(name) else by_name(text)
    return _part(whole, name, text)


def _callee(call: SgNode) -> str:
    callee = call.field("function") or call.field("constructor")
    return callee.text()[-_MAX_TEXT:] if callee is not None else ""


def arguments_of(call: SgNode) -> list[SgNode]:
    given = call.field("arguments")
    return [child for child in given.children() if child.is_named() and child.kind() != "comment"] if given else []


def _call(reader: Reader, block: Block, call: SgNode) -> Meaning:
    callee, arguments = _callee(call), arguments_of(call)
    function = call.field("function")
    if _ENVIRONMENT.search(callee):
        return OTHER
    if words.LIBRARY.match(callee):
        return (
            OTHER
            if words.refuses(callee.rpartition(".")[2])
            else FLAG
            if "onsent" in callee[-40:] or "accepted" in callee
            else CHOICE
        )
    text = call.text()[:_MAX_TEXT]
    if "document.cookie" in text:
        return CHOICE if words.is_key(text) else OTHER if words.refuses(text) else STORED
    if _PASSES_ON.fullmatch(callee) and arguments:
        return reader.meaning(block, arguments[0])
    if function is not None and function.kind() == "identifier" and _local(reader, function):
        for declared in reader.index.declarations[function.text()][:1]:
            if declared.value is not None and declared.value.kind() in FUNCTIONS:
                found = returned(reader, declared.block, declared.value)
                if found.kind is not Kind.OTHER or found != OTHER or not (_STORAGE.search(callee) and arguments):
                    return found if found.kind is not Kind.STORED or not arguments else _keyed(reader, arguments, found)
    if _STORAGE.search(callee[-60:]) and arguments:
        return _keyed(reader, arguments, STORED)
    if function is not None and function.kind() == "member_expression" and (on := function.field("object")):
        found = reader.meaning(block, on)
        method = callee.rpartition(".")[2]
        if found.kind is not Kind.OTHER:
            return _part(found, method, method)
        return by_name(callee)
    if function is not None and function.kind() == "identifier":
        if export := reader.index.imports.get(function.text()):
            return imported(export)
    return by_name(callee)


def _local(reader: Reader, name: SgNode) -> bool:
    return name.text() in reader.index.declarations


def _keyed(reader: Reader, arguments: list[SgNode], otherwise: Meaning) -> Meaning:
    key = _constant(reader, arguments[0]) if arguments[0].kind() != "array" else arguments[0].text()
    found = CHOICE if _names_category(arguments[0]) else _stored(reader, key[:_MAX_TEXT])
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
    """Returns the meaning of what a function returns."""
    body = function.field("body")
    if body is None:
        return OTHER
    if body.kind() != "statement_block":
        return reader.meaning(block, body)
    values = returns_of(function)
    found: Meaning | None = None
    for value in values:
        place = reader.found(block, value, function).implied
        one = reader.meaning(block, value)
        one = Meaning(
            both(place, one.true), both(place, one.false), one.kind if one.kind is not Kind.OTHER else Kind.FLAG
        )
        found = (
            one
            if found is None
            else Meaning(either(found.true, one.true), either(found.false, one.false), _more(found.kind, one.kind))
        )
    if found is None or (found.true == NOTHING and found.false == NOTHING and found.kind is Kind.FLAG):
        return OTHER
    return found


def _more(one: Kind, other: Kind) -> Kind:
    return Kind.CHOICE if Kind.CHOICE in {one, other} else one


_RETURNS: Final = {"rule": {"kind": "return_statement"}}


def returns_of(function: SgNode) -> list[SgNode]:
    body = function.field("body")
    if body is not None and body.kind() != "statement_block":
        inner = body.child(1) if body.kind() == "parenthesized_expression" else body
        return [inner] if inner is not None else []
    found = []
    for statement in function.find_all(_RETURNS):  # type: ignore[call-overload]
        around = next((it for it in statement.ancestors() if it.kind() in FUNCTIONS), None)
        value = statement.child(1)
        if around == function and value is not None and value.is_named():
            found.append(value)
        if len(found) >= _MAX_RETURNS:
            break
    return found

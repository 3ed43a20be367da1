"""The names of a file: where they are declared, imported, exported, and used, in all of its scripts.

Each index is built once, when a condition first needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

from ast_grep_py import Config, SgNode

from openassent_analysis.blocks import SCRIPTS, Block
from openassent_analysis.gating import DEFAULT, WHOLE, Export
from openassent_analysis.reading import resource
from openassent_analysis.statements import FUNCTIONS, MAX_LENGTH, exported_names, imported_names

MAX_ANCESTORS: Final = 200
_NAMES: Final = resource("queries")["names"]
_CLICKS: Final = resource("queries")["clicks"]
_MAX_CLICKS: Final = 100
_DECLARATIONS: Final = resource("queries")["declarations"]
_PYTHON_DECLARATIONS: Final[Config] = {"rule": {"kind": "function_definition"}}
_ASSIGNMENTS: Final[Config] = {"rule": {"kind": "assignment_expression"}}
_PARAMETER: Final = re.compile(r"[A-Za-z_$][\w$]*")
_IN_ATTRIBUTE: Final = re.compile(
    r"""(?<![\w-])(?:on:?|@|v-on:|\(|data-on-)([a-z]{2,20}|(?<=on)[A-Z][A-Za-z]{1,19})(?:[.|][a-z."""
    r"""|]{1,40})?\)?\s{0,5}=\s{0,5}["'{]([^"'}<>]{1,200})"""
)
_STRING: Final = re.compile(
    r"""(?<![\w$])([A-Za-z_$][\w$]{0,60}+)(?:\s{0,5}:\s{0,5}\w{1,20})?\s{0,5}[=:]\s{0,5}["'`]([^"'`\n]{1,100})["'`]"""
)
_WORD: Final = re.compile(r"[A-Za-z_$][\w$]*")


_ALPINE: Final = re.compile(r"""\bx-data\s{0,5}=\s{0,5}["']\{([^"'{}]{1,300})\}""")
_FALSE: Final = re.compile(r"(?<![\w$])([A-Za-z_$][\w$]{0,60})\s{0,5}:\s{0,5}false\b")


class Place(NamedTuple):
    block: Block
    node: SgNode


class Declared(NamedTuple):
    """A name's declaration: the node that declares it, its value, and the path to the name in a pattern."""

    block: Block
    node: SgNode
    value: SgNode | None
    # The property or position by which a pattern takes the name out of the value. Empty for the value itself.
    part: str = ""


# private consent: ConsentService, and consent = inject(ConsentService)
_SERVICE: Final = re.compile(
    r"\b(?:private|public|protected|readonly)\s{1,9}(?:readonly\s{1,9})?(\w{1,60})\s{0,9}:\s{0,9}([A-Z]\w{1,80})"
    r"|\b(\w{1,60})\s{0,9}=\s{0,9}inject\(\s{0,9}([A-Z]\w{1,80})"
)


class Index:
    def __init__(self, blocks: list[Block], text: str) -> None:
        self._text: Final = text
        self.scripts: Final = [block for block in blocks if block.language in SCRIPTS or block.language == "python"]

    @cached_property
    def uses(self) -> dict[str, list[Place]]:
        """All places that use each name, including as the name of a property."""
        found: dict[str, list[Place]] = {}
        for block in self.scripts:
            names: Config = {"rule": {"kind": "identifier"}} if block.language == "python" else _NAMES
            for node in block.root.find_all(names):
                found.setdefault(node.text(), []).append(Place(block, node))
        return found

    @cached_property
    def clicks(self) -> list[Place]:
        """The first places at which code clicks an element."""
        scripts = (block for block in self.scripts if block.language in SCRIPTS)
        return [Place(block, node) for block in scripts for node in block.root.find_all(_CLICKS)[:_MAX_CLICKS]]

    @cached_property
    def strings(self) -> dict[str, str]:
        """The first string that each name, field, or property is set to."""
        found: dict[str, str] = {}
        for match in _STRING.finditer(self._text):
            found.setdefault(match[1], match[2])
        return found

    @cached_property
    def services(self) -> dict[str, str]:
        """The classes of the services that Angular gives to the file's classes, by the properties that hold them."""
        found: dict[str, str] = {}
        for match in _SERVICE.finditer(self._text):
            found.setdefault(match[1] or match[3], match[2] or match[4])
        return found

    @cached_property
    def events(self) -> dict[str, set[str]]:
        """The events of elements whose attributes name a function."""
        found: dict[str, set[str]] = {}
        for match in _IN_ATTRIBUTE.finditer(self._text):
            for name in _WORD.findall(match[2]):
                found.setdefault(name, set()).add(match[1].lower())
        return found

    @cached_property
    def closed(self) -> set[str]:
        """The names that are false at first in the data of Alpine's elements."""
        return {name for data in _ALPINE.findall(self._text) for name in _FALSE.findall(data)}

    @cached_property
    def _statements(self) -> tuple[dict[str, list[Declared]], dict[str, Export], dict[str, str]]:
        declared: dict[str, list[Declared]] = {}
        imported: dict[str, Export] = {}
        exported: dict[str, str] = {}
        for block in self.scripts:
            wanted = _PYTHON_DECLARATIONS if block.language == "python" else _DECLARATIONS
            for node in block.root.find_all(wanted):
                kind = node.kind()
                if kind == "import_statement":
                    imported |= dict(_imports(node))
                elif kind == "export_statement":
                    exported |= dict(_exports(node))
                elif kind == "variable_declarator":
                    for name, entry in _declared(block, node):
                        declared.setdefault(name, []).append(entry)
                        if module := _required(entry.value):
                            imported[name] = Export(module, entry.part or WHOLE)
                elif name_node := node.field("name"):
                    declared.setdefault(name_node.text(), []).append(Declared(block, node, node))
            for assignment in block.root.find_all(_ASSIGNMENTS) if "exports" in block.text else ():
                exported |= dict(_assigned(assignment))
        return declared, imported, exported

    def uses_in(self, block: Block, place: SgNode, name: str, most: int) -> list[SgNode]:
        """Returns the places of a name inside a node of the block, among the first of the whole file."""
        span = place.range()
        return [
            use.node
            for use in self.uses.get(name, ())[:most]
            if use.block is block and span.start.index <= use.node.range().start.index < span.end.index
        ]

    @property
    def declarations(self) -> dict[str, list[Declared]]:
        return self._statements[0]

    @property
    def imports(self) -> dict[str, Export]:
        return self._statements[1]

    @property
    def exports(self) -> dict[str, str]:
        """The exported name of each local one."""
        return self._statements[2]

    @cached_property
    def assignments(self) -> dict[str, list[Place]]:
        """The assignments to each name, to its `value` (a Vue ref), and to it as a property of `this` or `window`."""
        found: dict[str, list[Place]] = {}
        for block in self.scripts:
            if block.language == "python":
                continue
            for node in block.root.find_all(_ASSIGNMENTS):
                left = node.field("left")
                if left is not None and (name := bare_name(left.text())):
                    found.setdefault(name, []).append(Place(block, node))
        return found

    @cached_property
    def _parameters(self) -> dict[SgNode, frozenset[str]]:
        return {}

    def parameter(self, node: SgNode, name: str) -> SgNode | None:
        """Returns the innermost function around a node that has a parameter of the name, or None."""
        for ancestor in node.ancestors()[:MAX_ANCESTORS]:
            if ancestor.kind() in FUNCTIONS and name in self.parameters(ancestor):
                return ancestor
        return None

    def parameters(self, function: SgNode) -> frozenset[str]:
        if function not in self._parameters:
            given = function.field("parameters") or function.field("parameter")
            names = _PARAMETER.findall(given.text()[:1000]) if given is not None else []
            self._parameters[function] = frozenset(names)
        return self._parameters[function]


def bare_name(text: str) -> str:
    """Returns the name that an assignment's left side sets, or an empty string."""
    text = text.removeprefix("window.").removeprefix("this.").removeprefix("$").removesuffix(".value")
    return text if _WORD.fullmatch(text) else ""


def _imports(statement: SgNode) -> Iterator[tuple[str, Export]]:
    written = statement.field("source")
    if written is not None:
        yield from imported_names(statement, written.text()[1:-1][:MAX_LENGTH])


def _exports(statement: SgNode) -> Iterator[tuple[str, str]]:
    """Yields (local name, exported name)."""
    if statement.field("source") is not None:
        return
    for local, name in exported_names(statement):
        if local[:1] in {"{", "["}:  # a pattern, whose names are exported as they are
            yield from ((word, word) for word in _WORD.findall(local[:MAX_LENGTH]))
        else:
            yield local, name[:MAX_LENGTH]


def _assigned(assignment: SgNode) -> Iterator[tuple[str, str]]:
    left, right = assignment.field("left"), assignment.field("right")
    if left is None or right is None or not left.text().startswith(("module.exports", "exports.")):
        return
    name = left.text().rpartition(".")[2][:MAX_LENGTH]
    if right.kind() == "identifier":
        yield right.text(), DEFAULT if name == "exports" else name
    elif right.kind() == "object" and name == "exports":
        for part in right.children():
            if part.kind() == "shorthand_property_identifier":
                yield part.text(), part.text()[:MAX_LENGTH]
            elif key := part.field("key") or part.field("name"):
                value = part.field("value")
                named = value if value is not None and value.kind() == "identifier" else key
                yield named.text(), key.text()[:MAX_LENGTH]
    elif function := right.field("name"):
        yield function.text(), DEFAULT if name == "exports" else name


def _declared(block: Block, declarator: SgNode) -> Iterator[tuple[str, Declared]]:
    name, value = declarator.field("name"), declarator.field("value")
    kind = name.kind() if name is not None else ""
    if name is None:
        return
    if kind == "identifier":
        yield name.text(), Declared(block, declarator, value)
    elif kind == "array_pattern":
        parts = [part for part in name.children() if part.is_named()]
        for position, part in enumerate(parts):
            if part.kind() == "identifier":
                yield part.text(), Declared(block, declarator, value, str(position))
    elif kind == "object_pattern":
        for part in name.children():
            for local, taken in _taken(part):
                yield local, Declared(block, declarator, value, taken)


def _taken(part: SgNode) -> Iterator[tuple[str, str]]:
    """Yields the local name and the property of a part of an object's pattern."""
    kind = part.kind()
    if kind == "shorthand_property_identifier_pattern":
        yield part.text(), part.text()
    elif kind == "object_assignment_pattern" and (left := part.field("left")):
        yield left.text(), left.text()
    elif kind == "pair_pattern" and (key := part.field("key")) and (target := part.field("value")):
        yield from ((word, key.text()) for word in _WORD.findall(target.text()[:MAX_LENGTH]))


_REQUIRE: Final = re.compile(r"""(?:await\s+)?(?:require|import)\(\s*["']([^"'\n]{1,300})["']\s*\)""")


def _required(value: SgNode | None) -> str:
    if value is None or value.kind() not in {"call_expression", "await_expression"}:
        return ""
    match = _REQUIRE.fullmatch(value.text()[:400])
    return match[1] if match else ""


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

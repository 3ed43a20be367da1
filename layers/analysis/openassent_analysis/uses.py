"""Reads a file's uses of the project's other files: its imports, includes, and scripts, and where they are used.

A static import runs the other file's code outside of functions. Each place that names what was imported may run it.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from ast_grep_py import Config, SgNode

from openassent_analysis.blocks import SCRIPTS, Block
from openassent_analysis.files import Skipped, check_depth
from openassent_analysis.gates import calls_on_page, template_gating, use_gating
from openassent_analysis.gating import ANY, DEFAULT, OPEN, PAGE, WHOLE, Export, Gate, Gating, Unclear, Use
from openassent_analysis.limits import Limits
from openassent_analysis.modules import COMPONENT_FILES, joined, stem
from openassent_analysis.reading import resource
from openassent_analysis.report import MAX_USES
from openassent_analysis.sources import Source
from openassent_analysis.statements import MAX_LENGTH, assigned_exports, handed_on, imported_names, own_exports

_MAX_USES_OF_NAME: Final = 20
_MAX_NODES_OF_NAME: Final = 60
_MAX_DEPTH: Final = 200
_NAMES: Final = re.compile(r"[\w.@~$-]++")
_OWN_SCRIPT: Final = re.compile(r"""(?<![\w:/.@-])/{0,1}[\w@.~-]{1,100}(?:/[\w@.~-]{1,100}){0,12}""")
_SCRIPT_NAME: Final = re.compile(r"\.[cm]?[jt]sx?$")
_SOURCE: Final = re.compile(r"""^:?(?:data-)?src$""", re.IGNORECASE)
_LAZY: Final = re.compile(r"(?:^|\.)(?:lazy|dynamic|defineAsyncComponent|loadable|lazyWithPreload|\w*[lL]azy\w*)$")
_CALLS: Final = resource("queries")["import_calls"]
# loadScript('/js/tag.js'), script.src = '/js/tag.js'
_SCRIPTS: Final = resource("queries")["script_loads"]
_OWN_FILE: Final = re.compile(
    r"""["'`](/{0,1}[\w@.~-]{1,100}(?:/[\w@.~-]{1,100}){0,12}\.js)(?:\?[^"'`]{0,100})?["'`]"""
)
# <LazyTags> of Nuxt is <Tags>, loaded later.
_LAZY_TAG: Final = re.compile(r"^(?:Lazy(?=[A-Z])|lazy-)")
_STATEMENTS: Final[Config] = {"rule": {"any": [{"kind": "import_statement"}, {"kind": "export_statement"}]}}
_EXPORTS: Final = resource("queries")["assigned_exports"]
_INJECTED: Final[Config] = {"rule": {"kind": "required_parameter", "has": {"kind": "accessibility_modifier"}}}
_MEMBERS: Final = resource("queries")["own_members"]
_TAGS: Final[Config] = {"rule": {"any": [{"kind": "start_tag"}, {"kind": "self_closing_tag"}]}}
_SHORTHANDS: Final[Config] = {"rule": {"kind": "shorthand_property_identifier"}}


def may_use(path: str, text: str, stems: frozenset[str]) -> bool:
    """Returns whether a file may name a module whose last word is one of the stems, without parsing it."""
    # An import of a folder may be only dots. Templates may write dots instead of slashes, and `x-` for components.
    words = {*path.split("/")[:-1], *_NAMES.findall(text)}
    return any(stem(part) in stems for word in words for part in _spellings(word))


def _spellings(word: str) -> set[str]:
    return {word, _LAZY_TAG.sub("", word), *word.removeprefix("x-").split(".")}


def uses_of(source: Source, stems: frozenset[str], limits: Limits, shared: frozenset[str] = frozenset()) -> list[Use]:
    """Returns the uses of modules whose last word is one of the stems, and the file's exports. Raises Skipped.

    shared: names of functions in other scripts of the page, whose calls are uses of the module PAGE.
    """
    check_depth(source.text, source.language, limits)
    deadline = min(source.deadline, time.thread_time() + limits.max_seconds_per_file)
    found = dict.fromkeys(_Reader(source, stems, deadline).uses())
    for name in sorted(shared):
        if name in source.text:
            found |= dict.fromkeys(Use(Export(PAGE, name), gate) for gate in calls_on_page(source, name))
    return list(found)[:MAX_USES]


class _Reader:
    def __init__(self, source: Source, stems: frozenset[str], deadline: float) -> None:
        self._source = source
        self._stems = stems
        self._deadline = deadline
        # By local name: the module and the name that it was imported under (WHOLE for the module's namespace).
        self._imported: dict[str, Export] = {}

    def uses(self) -> Iterator[Use]:
        yield from self._includes()
        for block in self._source.blocks:
            if block.language in SCRIPTS:
                yield from self._statements(block)
                yield from self._loads(block)
                yield from self._own_scripts(block)
        in_markup = set()
        for block in self._source.blocks:
            if block.language == "html":
                for use, name in self._tags(block):
                    in_markup.add(name)
                    yield use
        for block in self._source.blocks:
            if block.language in SCRIPTS:
                yield from self._names(block, in_markup)
                if block.language != "javascript":
                    yield from self._injected(block)

    def _wanted(self, module: str) -> bool:
        return len(module) <= MAX_LENGTH and (not self._stems or stem(joined(self._source.path, module)) in self._stems)

    def _wanted_import(self, module: str) -> bool:
        """Also excludes packages of a single word, which a registry has."""
        return ("/" in module or module.startswith(".")) and self._wanted(module)

    def _gating(self, block: Block, node: SgNode) -> Gating:
        if time.thread_time() > self._deadline:
            raise Skipped("too slow")
        return use_gating(self._source, block, node)

    def _includes(self) -> Iterator[Use]:
        for module, offset in self._source.includes:
            if self._wanted(module):
                yield Use(Export(module, WHOLE), self._gating_at(offset))

    def _gating_at(self, offset: int) -> Gating:
        """Returns the gating of a place in the markup where a template has put something else."""
        written = template_gating(self._source, offset)
        if written.gate is Gate.CLOSED:
            return written
        block = self._block_at(offset)
        found = self._gating(block, _element_at(block.root, offset - block.start))
        return found if found != OPEN else written

    def _block_at(self, offset: int) -> Block:
        """Returns the script around an offset, or else the page."""
        around = (
            block for block in self._source.blocks
            if block.language in SCRIPTS and block.start <= offset < block.start + len(block.text)
        )  # fmt: skip
        return next(around, self._source.main)

    # Imports and exports

    def _statements(self, block: Block) -> Iterator[Use]:
        for statement in block.root.find_all(_STATEMENTS):
            written = statement.field("source")
            if written is None:
                yield from self._own_exports(statement)
                continue
            module = written.text()[1:-1]
            if not self._wanted_import(module):
                continue
            if statement.kind() == "export_statement":
                yield from handed_on(statement, module)
            else:
                yield from self._import(statement, module)
        for assignment in block.root.find_all(_EXPORTS):
            yield from assigned_exports(assignment)

    def _own_exports(self, statement: SgNode) -> Iterator[Use]:
        for use in own_exports(statement):
            yield use
            if imported := self._imported.get(use.export.name):
                yield Use(Export(imported.module, ANY if imported.name == WHOLE else imported.name), use.gating)

    def _import(self, statement: SgNode, module: str) -> Iterator[Use]:
        kinds = {it.kind() for it in statement.children()}
        if "type" in kinds:
            return
        if "import_clause" not in kinds or not module.endswith(COMPONENT_FILES):
            yield Use(Export(module, WHOLE), OPEN)
        self._imported |= dict(imported_names(statement, module))

    def _loads(self, block: Block) -> Iterator[Use]:
        """Yields `import()` and `require()`, unless a name is bound to their result."""
        for call in block.root.find_all(_CALLS):
            given = call.field("arguments")
            written = (
                next((it for it in given.children() if it.kind() in {"string", "template_string"}), None)
                if given
                else None
            )
            if written is None:
                continue
            module = written.text()[1:-1]
            if not self._wanted_import(module):
                continue
            required = call.text().startswith("require")
            gate = self._gating(block, call)
            bound = _bound_name(call, required=required)
            if bound is None:
                yield Use(Export(module, ANY), gate)
                continue
            if required:
                yield Use(Export(module, WHOLE), gate)
            for local, name in _names_in(bound):
                # Code that `import()` loads runs only when the component is first used.
                whole = WHOLE if required else ANY
                self._imported[local] = Export(module, whole if name == DEFAULT else name)

    def _own_scripts(self, block: Block) -> Iterator[Use]:
        """Yields the places where code adds a script of the project to the page."""
        for node in block.root.find_all(_SCRIPTS) if ".js" in block.text else ():
            given = node.field("arguments") or node.field("right")
            for module in _OWN_FILE.findall(given.text()[:MAX_LENGTH]) if given is not None else ():
                if self._wanted(module):
                    yield Use(Export(module.lstrip("/"), WHOLE), self._gating(block, node))

    # Places that name the import

    def _names(self, block: Block, in_markup: set[str]) -> Iterator[Use]:
        if not self._imported:
            return
        shorthands: dict[str, list[SgNode]] = {}
        for node in block.root.find_all(_SHORTHANDS):
            if node.text() in self._imported:
                shorthands.setdefault(node.text(), []).append(node)
        for name, export in self._imported.items():
            if name in in_markup:
                continue
            nodes = [*block.uses.get(name, ())[:_MAX_NODES_OF_NAME], *shorthands.get(name, ())]
            # Whether it is one takes longer the deeper a node is.
            uses = (node for node in nodes[:_MAX_NODES_OF_NAME] if not _is_declaration(node))
            for node in islice(uses, _MAX_USES_OF_NAME):
                gate = self._gating(block, node)
                yield from self._use(export, node, gate)

    def _use(self, export: Export, node: SgNode, gate: Gating) -> Iterator[Use]:
        parent = node.parent()
        member = parent.field("property") if parent is not None and parent.kind() == "member_expression" else None
        if parent is not None and parent.kind() in {"nested_identifier", "jsx_namespace_name"}:
            member = parent.child(len(parent.children()) - 1)
        if export.name == WHOLE:
            yield Use(Export(export.module, member.text()[:MAX_LENGTH] if member is not None else ANY), gate)
            return
        yield Use(export, gate)
        if member is not None:
            yield Use(Export(export.module, member.text()[:MAX_LENGTH]), gate)

    def _injected(self, block: Block) -> Iterator[Use]:
        """Yields services that Angular gives to a constructor, and the methods called on them."""
        services: dict[str, tuple[Export, Gating]] = {}
        for parameter in block.root.find_all(_INJECTED):
            kind, name = parameter.field("type"), parameter.field("pattern")
            export = self._imported.get(kind.text().lstrip(": ")) if kind else None
            if export is not None and name is not None:
                services[f"this.{name.text()}"] = export, self._gating(block, parameter)
        called: set[str] = set()
        for member in block.root.find_all(_MEMBERS) if services else ():
            instance, name = member.field("object"), member.field("property")
            if instance is not None and name is not None and instance.text() in services:
                called.add(instance.text())
                export, gate = services[instance.text()][0], self._gating(block, member)
                yield Use(export, gate)
                yield Use(Export(export.module, name.text()[:MAX_LENGTH]), gate)
        for service, (export, gate) in services.items():
            # The service may do something when it is made, or only in the methods.
            yield Use(export, replace(gate, unclear=Unclear.CALLBACK) if service in called else gate)

    # Markup

    def _tags(self, block: Block) -> Iterator[tuple[Use, str]]:
        components = {_tag_name(name): (name, export) for name, export in self._imported.items()}
        own = self._source.path.endswith(COMPONENT_FILES)
        for tag in block.root.find_all(_TAGS):
            name = tag.child(1)
            if name is None:
                continue
            written = name.text()
            if written.lower() == "script":
                for module in _scripts(tag):
                    if self._wanted(module):
                        yield Use(Export(module, WHOLE), self._gating(block, tag)), ""
            elif own and _tag_name(written) in components:
                local, export = components[_tag_name(written)]
                yield Use(export, self._gating(block, tag)), local
            elif own and ("-" in written or written[:1].isupper()):
                module = f"components/{_LAZY_TAG.sub('', written)}"
                if self._wanted(module):
                    yield Use(Export(module, DEFAULT), self._gating(block, tag)), ""


def _element_at(root: SgNode, offset: int) -> SgNode:
    """Returns the innermost node around an offset."""
    node = root
    for _ in range(_MAX_DEPTH):
        children = node.children()
        index = bisect_right(children, offset, key=lambda it: it.range().end.index)
        if index == len(children) or children[index].range().start.index > offset:
            return node
        node = children[index]
    return node


def _tag_name(name: str) -> str:
    return name.replace("-", "").lower()


def _scripts(tag: SgNode) -> Iterator[str]:
    for attribute in tag.children():
        if attribute.kind() != "attribute":
            continue
        name = attribute.child(0)
        if name is None or not _SOURCE.match(name.text()):
            continue
        address = attribute.text().partition("=")[2].strip()[:MAX_LENGTH]
        if "//" in address.partition("{{")[0][:12]:
            continue
        for path in _OWN_SCRIPT.findall(address.partition("?")[0]):
            if _SCRIPT_NAME.search(path):
                yield path.lstrip("/")


def _bound_name(call: SgNode, *, required: bool) -> SgNode | None:
    """Returns the pattern of the variable that holds a call's result, or None."""
    lazy = required
    for parent in call.ancestors()[:8]:
        kind = parent.kind()
        if kind == "variable_declarator":
            return parent.field("name") if lazy else None
        if kind == "call_expression":
            callee = parent.field("function")
            if callee is None:
                return None
            if _LAZY.search(callee.text()[-60:]):
                lazy = True
            elif required or not callee.text().startswith("import"):
                return None
        elif kind not in {
            "arguments",
            "arrow_function",
            "await_expression",
            "parenthesized_expression",
            "member_expression",
        }:
            return None
    return None


def _names_in(pattern: SgNode) -> Iterator[tuple[str, str]]:
    """Yields (local name, exported name) for a variable's name or pattern."""
    if pattern.kind() == "identifier":
        yield pattern.text(), DEFAULT
    for part in pattern.children() if pattern.kind() == "object_pattern" else ():
        if part.kind() == "shorthand_property_identifier_pattern":
            yield part.text(), part.text()
        elif part.kind() == "pair_pattern":
            key, value = part.field("key"), part.field("value")
            if key is not None and value is not None:
                yield value.text(), key.text()


def _is_declaration(node: SgNode) -> bool:
    parent = node.parent()
    if parent is None:
        return False
    if parent.kind() in {
        "import_specifier",
        "import_clause",
        "namespace_import",
        "export_specifier",
        "jsx_closing_element",
    }:
        return True
    if parent.kind() == "export_statement":
        return True
    name = parent.field("name")
    return parent.kind() == "variable_declarator" and name is not None and bool(name == node)

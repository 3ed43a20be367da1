"""Reads import and export statements: the names that a file imports, exports, and hands on of others.

An export of the file itself is a use of the module ITSELF: the exported name runs the local one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.gating import DEFAULT, ITSELF, OPEN, WHOLE, Export, Gate, Gating, Use

MAX_LENGTH: Final = 300


def _exported(local: str, name: str) -> Use:
    return Use(Export(ITSELF, local[:MAX_LENGTH]), Gating(Gate.CALLERS, (name[:MAX_LENGTH],)))


def handed_on(statement: SgNode, module: str) -> Iterator[Use]:
    """Yields the exports of `export ... from` another file."""
    yield Use(Export(module, WHOLE), OPEN)
    clause = next((it for it in statement.children() if it.kind() == "export_clause"), None)
    if clause is None:
        yield Use(Export(module, WHOLE), Gating(Gate.CALLERS, (WHOLE,)))
        return
    for name, exported in _specifiers(clause):
        yield Use(Export(module, name), Gating(Gate.CALLERS, (exported,)))


def _specifiers(clause: SgNode) -> Iterator[tuple[str, str]]:
    """Yields each name in `{ name as alias }`, and its alias or the name again."""
    for specifier in clause.children():
        if specifier.kind() in {"import_specifier", "export_specifier"}:
            name, alias = specifier.field("name"), specifier.field("alias")
            if name is not None:
                yield name.text()[:MAX_LENGTH], (alias or name).text()[:MAX_LENGTH]


def imported_names(statement: SgNode, module: str) -> Iterator[tuple[str, Export]]:
    """Yields the local name and the export for each name that an import statement takes from a module."""
    clause = next((it for it in statement.children() if it.kind() == "import_clause"), None)
    for part in clause.children() if clause is not None else ():
        if part.kind() == "identifier":
            yield part.text(), Export(module, DEFAULT)
        elif part.kind() == "namespace_import":
            yield part.children()[-1].text(), Export(module, WHOLE)
        elif part.kind() == "named_imports":
            for name, local in _specifiers(part):
                yield local, Export(module, name)


def exported_names(statement: SgNode) -> Iterator[tuple[str, str]]:
    """Yields the local and the exported name for each name or pattern that an export statement declares or lists."""
    default = any(it.kind() == "default" for it in statement.children())
    for part in statement.children():
        kind = part.kind()
        if kind == "export_clause":
            yield from _specifiers(part)
        elif kind in {"lexical_declaration", "variable_declaration"}:
            for declarator in part.children():
                if declared := declarator.field("name"):
                    yield declared.text(), declared.text()
        elif declared := part.field("name"):
            yield declared.text(), DEFAULT if default else declared.text()
        elif default:
            yield from ((name, DEFAULT) for name in _names_of_default(part))


def own_exports(statement: SgNode) -> Iterator[Use]:
    """Yields an export statement's exports of the file itself."""
    for local, name in exported_names(statement):
        yield _exported(local, name)


def _names_of_default(value: SgNode) -> Iterator[str]:
    """Yields the names in `export default Analytics` and `export default memo(Analytics)`."""
    given = value.field("arguments") if value.kind() == "call_expression" else None
    for node in given.children() if given else [value]:
        if node.kind() == "identifier":
            yield node.text()


def assigned_exports(assignment: SgNode) -> Iterator[Use]:
    """Yields the exports of an assignment to `module.exports` or to a part of it."""
    left, right = assignment.field("left"), assignment.field("right")
    if left is None or right is None:
        return
    name = left.text().rpartition(".")[2]
    if right.kind() == "identifier":
        yield _exported(right.text(), DEFAULT if name == "exports" else name)
    elif right.kind() == "object":
        for part in right.children():
            if part.kind() == "shorthand_property_identifier":
                yield _exported(part.text(), part.text())
            elif part.kind() in {"pair", "method_definition"}:
                key, value = part.field("key") or part.field("name"), part.field("value")
                if key is not None:
                    yield _exported(key.text(), key.text())
                if key is not None and value is not None and value.kind() == "identifier":
                    yield _exported(value.text(), key.text())


FUNCTIONS: Final = frozenset({
    "function_declaration", "function_expression", "arrow_function", "method_definition",
    "generator_function_declaration", "function_definition",
})  # fmt: skip

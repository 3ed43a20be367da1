"""Finds the regular expressions and the patterns of validated text in the product's modules."""

import ast
import importlib
import pkgutil
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from tests.support.operations import FUNCTIONS, operations

# The modules of the operator's commands that read text from clients or repositories.
_OPS = ("ops.dead_letters", "ops.feedback")
_MATCHING = {"match", "fullmatch", "search", "finditer", "findall", "split", "sub", "subn", "scanner"}
_OF_RE = _MATCHING | {"compile", "template"}


@cache
def modules() -> tuple[types.ModuleType, ...]:
    """Returns every module of the layers and the functions, and those of `assent-ops` that read untrusted text."""
    packages = ["controlplane", "openassent_analysis", *sorted(path.parent.name for path in FUNCTIONS.glob("*/app.py"))]
    names = [
        found.name
        for package in packages
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
        if not found.name.endswith("__main__")
    ]
    return tuple(importlib.import_module(name) for name in [*names, *_OPS])


@cache
def tree_of(module: types.ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text())


@dataclass(frozen=True, eq=False)
class FoundPattern:
    """A compiled expression, its location, and the methods that are called on it."""

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


@cache
def patterns() -> tuple[FoundPattern, ...]:
    """Returns every expression that is reachable from the modules through containers, classes, and our objects."""
    return tuple(
        FoundPattern(
            f"{module.__name__}.{name}", pattern, _methods().get((module.__name__, name), frozenset(_MATCHING))
        )
        for module in modules()
        for name, value in vars(module).items()
        for pattern in _reachable(value, module.__name__, set())
    )


def _reachable(value: Any, home: str, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif id(value) not in seen:
        seen.add(id(value))
        for entry in _parts(value, home):
            yield from _reachable(entry, home, seen)


def _parts(value: Any, home: str) -> list[Any]:
    """Returns the values in a container, or in a function, class, or object of the module `home`."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, types.FunctionType) and value.__module__ == home:
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
        return [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *cells]
    if home in {getattr(value, "__module__", None), type(value).__module__} and hasattr(value, "__dict__"):
        return list(vars(value).values())
    return []


@cache
def _methods() -> dict[tuple[str, str], frozenset[str]]:
    """Returns the methods called on each expression, by module and name; all methods if other code receives it."""
    found: dict[tuple[str, str], set[str]] = {}
    for module in modules():
        tree = tree_of(module)
        imported = {
            alias.asname or alias.name: (str(node.module), alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                parent = parents[node]
                if isinstance(parent, ast.Subscript) and parent.value is node:
                    parent = parents[parent]
                called = {parent.attr} & _MATCHING if isinstance(parent, ast.Attribute) else set()
                place = imported.get(node.id, (module.__name__, node.id))
                found.setdefault(place, set()).update(called or _MATCHING)
    return {place: frozenset(methods) for place, methods in found.items()}


def hidden_expressions(module: types.ModuleType) -> Iterator[str]:
    """Yields the places where the module uses an expression that `patterns` can't find."""
    tree = tree_of(module)
    kept = {
        inner
        for statement in _statements(tree)
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
        for inner in _outside_functions(statement.value)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in {"re", "regex", "fnmatch", "glob"}:
            yield f"{module.__name__}:{node.lineno} imports from {node.module}"
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in {"regex", "fnmatch", "glob"} or (alias.name == "re" and alias.asname):
                    yield f"{module.__name__}:{node.lineno} imports {alias.name}"
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "re"
            and node.attr in _OF_RE
            and not (node.attr == "compile" and node in kept)
        ):
            yield f"{module.__name__}:{node.lineno} re.{node.attr}"


def _statements(tree: ast.Module | ast.ClassDef) -> Iterator[ast.stmt]:
    for statement in tree.body:
        yield statement
        if isinstance(statement, ast.ClassDef):
            yield from _statements(statement)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Lambda):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _outside_functions(child)


def schema_strings() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each pydantic string schema that has a pattern, with the configuration that applies to it."""
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.__name__:
                value.model_rebuild()
                yield from _strings(value.__pydantic_core_schema__, f"{module.__name__}.{name}")
            elif isinstance(value, TypeAdapter):
                yield from _strings(value.core_schema, f"{module.__name__}.{name}")
    for operation in operations():
        parameters = operation.route.dependant
        for parameter in (*parameters.query_params, *parameters.header_params, *parameters.path_params):
            yield from _strings(parameter._type_adapter.core_schema, f"{operation.name} {parameter.alias}")


def _strings(schema: Any, place: str, config: Mapping[str, Any] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, Mapping):
        config = {**(config or {}), **(schema.get("config") or {})}
        if schema.get("type") == "str" and schema.get("pattern") is not None:
            yield place, {"regex_engine": config.get("regex_engine"), **schema}
        for value in schema.values():
            yield from _strings(value, place, config)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from _strings(value, place, config)

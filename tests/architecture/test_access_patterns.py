"""Compares docs/access-patterns.md with the store functions that reach the table, in both directions."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
STORE = ROOT / "layers" / "shared" / "controlplane" / "store"
DOCUMENT = ROOT / "docs" / "access-patterns.md"
_FOUNDATION = {"__init__", "client", "codec", "keys", "table"}


@cache
def _modules() -> dict[str, ast.Module]:
    """Returns the store's entity modules by name: `inbox`, or `scans.requests` for a package's module."""
    paths = {".".join(path.relative_to(STORE).with_suffix("").parts): path for path in sorted(STORE.rglob("*.py"))}
    return {name: ast.parse(path.read_text()) for name, path in paths.items() if name not in _FOUNDATION}


@cache
def _functions() -> dict[str, ast.FunctionDef]:
    """Returns every function of the store's entity modules, keyed by `module.name`."""
    return {
        f"{module}.{node.name}": node
        for module, tree in _modules().items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


@cache
def _imported(module: str) -> dict[str, str]:
    """Returns what the module imports from the store, modules and names, by their names within the store."""
    return {
        alias.name: f"{node.module}.{alias.name}".removeprefix("controlplane.store.")
        for node in _modules()[module].body
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("controlplane.store.")
        for alias in node.names
    }


def _called(name: str) -> set[str]:
    """Returns the store names that a function refers to: `table`, and functions of its own and other store modules."""
    module = name.rpartition(".")[0]
    named = set()
    for node in ast.walk(_functions()[name]):
        if isinstance(node, ast.Name):
            named |= {node.id, _imported(module).get(node.id, f"{module}.{node.id}")}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            named.add(f"{_imported(module).get(node.value.id, node.value.id)}.{node.attr}")
    return named


def _reaching() -> set[str]:
    """Returns the functions that reach the table, directly or through others."""
    reaching: set[str] = set()
    while True:
        more = {name for name in _functions() if {"table", *reaching} & _called(name)} - reaching
        if not more:
            return reaching
        reaching |= more


def test_every_public_function_that_reaches_the_table_is_documented_and_no_other():
    documented = set(re.findall(r"^\| `(\w+(?:\.\w+)+)` \|", DOCUMENT.read_text(), re.MULTILINE))
    public = {name for name in _reaching() if not name.rpartition(".")[2].startswith("_")}
    assert documented == public


def test_nothing_scans_the_table():
    for path in sorted([*STORE.rglob("*.py"), *(ROOT / "functions").rglob("*.py")]):
        assert not re.search(r"\b(client|table)\.scan\(|get_paginator", path.read_text()), path

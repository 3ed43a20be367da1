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
def _functions() -> dict[str, ast.FunctionDef]:
    """Returns every function of the store's entity modules, keyed by `module.name`."""
    found = {}
    for path in sorted(STORE.glob("*.py")):
        if path.stem not in _FOUNDATION:
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.FunctionDef):
                    found[f"{path.stem}.{node.name}"] = node
    return found


@cache
def _imported(module: str) -> dict[str, str]:
    """Returns the names that the module imports from other store modules, mapped to `module.name`."""
    return {
        alias.name: f"{node.module.rpartition('.')[2]}.{alias.name}"
        for node in ast.parse((STORE / f"{module}.py").read_text()).body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("controlplane.store.")
        for alias in node.names
    }


def _called(name: str) -> set[str]:
    """Returns the store names that a function refers to: `table`, and functions of its own and other store modules."""
    module = name.partition(".")[0]
    named = set()
    for node in ast.walk(_functions()[name]):
        if isinstance(node, ast.Name):
            named |= {node.id, _imported(module).get(node.id, f"{module}.{node.id}")}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            named.add(f"{node.value.id}.{node.attr}")
    return named


def _reaching() -> set[str]:
    """Returns the functions that reach the table, directly or through others."""
    reaching: set[str] = set()
    while True:
        more = {name for name in _functions() if {"table", *reaching} & _called(name)} - reaching
        if not more:
            return reaching
        reaching |= more


def test_every_public_function_that_reaches_the_table_is_a_documented_access_pattern_and_no_other():
    documented = set(re.findall(r"^\| `(\w+\.\w+)` \|", DOCUMENT.read_text(), re.MULTILINE))
    public = {name for name in _reaching() if not name.partition(".")[2].startswith("_")}
    assert documented == public


def test_nothing_scans_the_table():
    for path in sorted([*STORE.glob("*.py"), *(ROOT / "functions").rglob("*.py")]):
        assert not re.search(r"\b(client|table)\.scan\(|get_paginator", path.read_text()), path

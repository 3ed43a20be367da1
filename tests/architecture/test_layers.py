"""The import rules in pyproject.toml cover every function. `make lint` enforces the rules."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RULES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
FUNCTIONS = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}


class TestContracts:
    def test_the_contracts_name_every_function(self):
        packages = {"openassent", "openassent_analysis", "openassent_audit", "awsclient", "controlplane"}
        assert set(RULES["root_packages"]) == FUNCTIONS | packages | {"deployment_check", "local", "ops"}

    def test_the_contracts_keep_functions_from_importing_each_other(self):
        layers = next(it["layers"] for it in RULES["contracts"] if it["type"] == "layers" and "containers" not in it)
        assert FUNCTIONS in [set(layer.split(" | ")) for layer in layers]
        assert layers[-2:] == ["controlplane | openassent_analysis", "awsclient"]

    def test_the_check_of_a_deployment_imports_nothing_that_it_checks(self):
        [rule] = [it for it in RULES["contracts"] if it.get("source_modules") == ["deployment_check"]]
        assert set(rule["forbidden_modules"]) == FUNCTIONS | {"openassent_analysis", "awsclient", "controlplane"}

    def test_only_functions_with_the_analysis_in_a_layer_import_it(self):
        [rule] = [it for it in RULES["contracts"] if it.get("forbidden_modules") == ["openassent_analysis"]]
        assert set(rule["source_modules"]) == (FUNCTIONS | {"controlplane"}) - {
            "scan_execution",
            "dashboard",
            "website_audits",
        }


def test_nothing_scans_the_table():
    for folder in ("layers/shared/controlplane", "functions"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            assert not re.search(r"\b(client|table)\.scan\(|get_paginator", path.read_text()), path


def _imports(path: Path) -> list[str]:
    """Returns the modules that a module's own statements import, in order."""
    found: list[str] = []
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Import):
            found += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            found += [f"{statement.module}.{alias.name}" for alias in statement.names]
    return found


def test_every_function_and_the_app_factory_import_lazy_imports_first():
    """Lazy imports can only skip modules that aren't imported yet, so it must run before FastAPI is imported."""
    apps = {path: _imports(path) for path in (ROOT / "functions").glob("*/app.py")}
    factory = ROOT / "layers/shared/controlplane/platform/http/app.py"
    first = {path: names[0] for path, names in apps.items() if "controlplane.platform.http.app.create_app" in names}
    assert len(first) >= 6
    assert {*first.values(), _imports(factory)[0]} == {"controlplane.platform.core.lazy_imports"}

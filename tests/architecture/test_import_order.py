"""Lazy imports can only skip modules that aren't imported yet, so it must run before FastAPI is imported."""

import ast
from pathlib import Path

from tests.support.each import each

ROOT = Path(__file__).resolve().parents[2]


def _imports(path: Path) -> list[str]:
    """Returns the modules that a module's own statements import, in order."""
    found: list[str] = []
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Import):
            found += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            found += [f"{statement.module}.{alias.name}" for alias in statement.names]
    return found


APPS = [
    path
    for path in sorted((ROOT / "functions").glob("*/app.py"))
    if "controlplane.http.app.create_app" in _imports(path)
]


@each("path", APPS, ids=[path.parent.name for path in APPS])
def test_a_function_imports_lazy_imports_first(path):
    assert _imports(path)[0] == "controlplane.core.lazy_imports"


def test_the_app_factory_imports_lazy_imports_first():
    assert _imports(ROOT / "layers/shared/controlplane/http/app.py")[0] == "controlplane.core.lazy_imports"


def test_there_are_functions():
    assert len(APPS) >= 6

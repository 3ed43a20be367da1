"""Lazy imports can only skip modules that aren't imported yet, so it must run before FastAPI is imported."""

import ast
from pathlib import Path

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


def test_every_function_and_the_app_factory_import_lazy_imports_first():
    apps = {path: _imports(path) for path in (ROOT / "functions").glob("*/app.py")}
    factory = ROOT / "layers/shared/controlplane/platform/http/app.py"
    first = {path: names[0] for path, names in apps.items() if "controlplane.platform.http.app.create_app" in names}
    assert len(first) >= 6
    assert {*first.values(), _imports(factory)[0]} == {"controlplane.platform.core.lazy_imports"}

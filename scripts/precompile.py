"""Writes what the build compiles in advance, so that a cold start doesn't: `python -m scripts.precompile WHAT TARGET`.

`dataclasses` writes the methods of all functions' dataclasses to a file, and `templates` the templates of the pages as
modules to a folder. Both import the functions, so they need the environment of the application (.venv), not SAM's.
"""

import builtins
import dataclasses
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from scripts.artifacts import ROOT

# Importing an app reads them.
_SETTINGS = {
    "TABLE_NAME": "assent",
    "PUBLIC_BASE_URL": "https://api.example.com",
    "DASHBOARD_BASE_URL": "https://dashboard.example.com",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "POWERTOOLS_METRICS_NAMESPACE": "assent",
}


def collect() -> set[str]:
    """Returns the sources of the methods of every dataclass of apps and routes. Nothing may be imported before."""
    sources = set()

    def execute(source: str, *namespaces: Any) -> None:
        sources.add(source)
        builtins.exec(source, *namespaces)  # nosec B102  # noqa: S102

    dataclasses.exec = execute  # type: ignore[attr-defined]
    apps = sorted((ROOT / "functions").glob("*/app.py"))
    for app in (it for it in apps if "controlplane" in it.read_text()):  # one worker has no shared layer
        importlib.import_module(f"{app.parent.name}.app")
    # Those that are imported at a request.
    for routes in sorted((ROOT / "functions").glob("*/*routes.py")):
        importlib.import_module(f"{routes.parent.name}.{routes.stem}")
    del dataclasses.exec  # type: ignore[attr-defined]
    return sources


def make_importable() -> None:
    """Makes the functions importable in this process."""
    sys.path[:0] = [str(ROOT / folder) for folder in ("functions", "layers/shared", "layers/analysis")]
    os.environ |= _SETTINGS


def main(what: str, target: Path) -> None:
    make_importable()
    if what == "dataclasses":
        sources = collect()
        from controlplane.platform.core import dataclass_code  # noqa: PLC0415 (nothing may be imported before)

        target.write_bytes(dataclass_code.dump(sources))
    else:
        from dashboard import pages  # noqa: PLC0415 (importable only now)

        pages.compile_templates(target)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

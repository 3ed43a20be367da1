"""Reads this package's data files (rules, vendors, technologies)."""

from pathlib import Path
from typing import Any

import yaml

# libyaml reads the rules about twenty times faster, and every Linux wheel includes it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(path: Path) -> Any:
    text = path.read_bytes()
    return yaml.load(text, Loader=_Loader)  # nosec B506  # noqa: S506 (a safe loader, either way)

"""Files of this package (rules, vendors) as data."""

from pathlib import Path
from typing import Any

import yaml

# libyaml reads the rules some twenty times as fast, and is in every wheel for Linux.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(path: Path) -> Any:
    text = path.read_bytes()
    return yaml.load(text, Loader=_Loader)  # nosec B506  # noqa: S506 (a safe loader, either way)

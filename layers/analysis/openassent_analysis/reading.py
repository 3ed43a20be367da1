"""Reads this package's data files (rules, vendors, technologies, words)."""

import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

# libyaml reads the rules about twenty times faster, and every Linux wheel includes it.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# The words, names, and syntax that the code looks for.
LISTS: Final = (
    "consent-api", "consent-words", "frameworks", "hosts", "paths", "queries", "secrets", "template-languages",
    "vendor-settings",
)  # fmt: skip


def load_yaml(path: Path) -> Any:
    text = path.read_bytes()
    return yaml.load(text, Loader=LOADER)  # nosec B506  # noqa: S506 (a safe loader, either way)


@cache
def resource(name: str) -> Any:
    """Returns one of the lists. Don't change it."""
    return load_yaml(Path(__file__).with_name("resources") / f"{name}.yaml")


def alternatives(lines: str) -> str:
    """Returns the expression that matches what one of these lines does."""
    return lines.replace("\n", "|")


def pattern_of(lines: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(alternatives(lines), flags)

"""Reads this package's data files (rules, vendors, technologies, words)."""

import hashlib
import json
import re
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, Final

_RESOURCES: Final = Path(__file__).with_name("resources")
# The content of the data files as JSON, by the digest of each file: a line has both. It is next to the bytecode.
COPIES: Final = Path(cache_from_source(__file__)).with_suffix(".jsonl")
# The words, names, and syntax that the code looks for.
LISTS: Final = (
    "consent-api", "consent-words", "frameworks", "hosts", "paths", "queries", "secrets", "template-languages",
    "vendor-settings",
)  # fmt: skip


def load_yaml(path: Path) -> Any:
    """Returns the content of a file, from its copy if `copy_data` has made one: that is much faster."""
    text = path.read_bytes()
    copy = _copies().get(hashlib.sha256(text).hexdigest())
    return _parsed(text) if copy is None else json.loads(copy)


def loader() -> Any:
    """Returns libyaml's loader, which is about twenty times faster. Every Linux wheel includes it."""
    import yaml  # noqa: PLC0415 (takes long to import, and isn't needed with the copies)

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _parsed(text: bytes) -> Any:
    import yaml  # noqa: PLC0415

    return yaml.load(text, Loader=loader())  # nosec B506  # noqa: S506 (a safe loader, either way)


@cache
def _copies() -> dict[str, str]:
    with suppress(OSError, ValueError):
        return dict(line.split(" ", 1) for line in COPIES.read_text("ascii").splitlines())
    return {}


def copy_data() -> None:
    """Writes the copies of all data files, if the package's folder can be written."""
    lines = []
    for path in sorted(_RESOURCES.rglob("*.y*ml")):
        text = path.read_bytes()
        lines.append(f"{hashlib.sha256(text).hexdigest()} {json.dumps(_parsed(text))}\n")
    with suppress(OSError):
        new = COPIES.with_suffix(".new")
        new.write_text("".join(lines), "ascii")
        new.replace(COPIES)


@cache
def resource(name: str) -> Any:
    """Returns one of the lists. Don't change it."""
    return load_yaml(_RESOURCES / f"{name}.yaml")


def alternatives(lines: str) -> str:
    """Returns the expression that matches what one of these lines does."""
    return lines.replace("\n", "|")


def pattern_of(lines: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(alternatives(lines), flags)

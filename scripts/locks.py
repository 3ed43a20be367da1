"""What the hashed pins say of the packages that are deployed: in the layer, and in each function that has its own."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LAYER = "layer"
# The interpreter and the system of the functions: pins for others are not deployed.
_LAMBDA = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "aarch64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.13.0",
    "python_version": "3.13",
    "sys_platform": "linux",
    "extra": "",
}
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)(?:\s*;\s*([^\\]+))?")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, order=True)
class Pin:
    """One package. `hashes`: the SHA-256 of each of its archives that an installer may take."""

    name: str
    version: str
    hashes: tuple[str, ...] = ()


def applies(marker: str | None) -> bool:
    """Whether a requirement with this marker is one on Lambda."""
    return marker is None or Marker(marker).evaluate(_LAMBDA)


def read(lock: Path) -> list[Pin]:
    """The pins of a lock file that Lambda gets, by name."""
    return sorted(_read(lock))


def _read(lock: Path) -> Iterator[Pin]:
    for line in lock.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        found = _PIN.match(line)
        if found and applies((found[3] or "").split("--hash")[0].strip() or None):
            yield Pin(canonicalize_name(found[1]), found[2], tuple(sorted(_HASH.findall(line))))


def deployed() -> dict[str, list[Pin]]:
    """The pins of the layer, and those of each function that has packages of its own, by the function's name."""
    own = sorted((ROOT / "functions").glob("*/requirements.txt"))
    locks = {LAYER: ROOT / "layers" / "shared" / "requirements.txt"} | {lock.parent.name: lock for lock in own}
    return {place: read(lock) for place, lock in locks.items()}

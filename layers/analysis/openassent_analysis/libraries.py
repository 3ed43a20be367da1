"""Versions of consent libraries: finds them in addresses and lock files, and decides which are outdated."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from openassent_analysis.reading import load_yaml

LIBRARIES: Final = Path(__file__).with_name("resources") / "consent-libraries.yaml"

Version: TypeAlias = tuple[int, int, int]

# For any part of a version.
_ENDLESS: Final = 999_999

_VERSION: Final = re.compile(r"v?(\d{1,6})(?:\.(\d{1,6}|[x*]))?(?:\.(\d{1,6}|[x*]))?(?:[-+][\w.+-]*)?")
_ADDRESS: Final = re.compile(
    r"(?:/npm/|unpkg\.com/|esm\.sh/|skypack\.dev/)((?:@[\w.-]+/)?[\w.-]+)@v?(\d[\w.]*)"
    r"|/ajax/libs/([\w.-]+)/v?(\d[\w.]*)/|/(?:gh/[\w.-]+)/([\w.-]+)@v?(\d[\w.]*)",
    re.IGNORECASE,
)
# npm names of packages that have another name on cdnjs or GitHub.
_OTHER_NAMES: Final = {"cookieconsent2": "cookieconsent", "tarteaucitron.js": "tarteaucitronjs"}
_LOCKED: Final = re.compile(
    r"""^\s*"node_modules/(?P<npm>(?:@[\w.-]+/)?[\w.-]+)":\s*\{\s*$"""
    r"""|^"?(?P<yarn>(?:@[\w.-]+/)?[\w.-]+)@(?:npm:)?[^\n]*:\s*$"""
    r"""|^\s{2}'?/?(?P<pnpm>(?:@[\w.-]+/)?[\w.-]+)[@/](?P<exact>\d++\.\d++\.\d++)[^\n]*:\s*$""",
)
_LOCKED_VERSION: Final = re.compile(r"""^\s+"?version"?:?\s*"?(\d+\.\d+\.\d+)""")


@dataclass(frozen=True, slots=True)
class Library:
    package: str
    name: str
    below: Version | None
    unmaintained: bool
    why: str
    reference: str
    # Packages with the same one are upgraded together.
    family: str

    def outdated(self, version: Version) -> bool:
        return self.below is not None and version < self.below


@cache
def libraries() -> dict[str, Library]:
    return {
        entry["package"]: Library(
            entry["package"],
            entry["name"],
            parse(str(entry["below"])) if "below" in entry else None,
            entry.get("unmaintained", False),
            entry.get("why", ""),
            entry.get("reference", ""),
            entry.get("family", entry["package"]),
        )
        for entry in load_yaml(LIBRARIES)
    }


@cache
def families() -> dict[str, str]:
    """Returns the family of each library by the library's name."""
    return {library.name: library.family for library in libraries().values()}


def parse(text: str) -> Version | None:
    """Parses a version. Missing parts are 0. Returns None if the text isn't a version."""
    match = _VERSION.fullmatch(text.strip())
    if not match:
        return None
    major, minor, patch = (int(part) if part and part.isdigit() else 0 for part in match.groups())
    return major, minor, patch


def newest_allowed(wanted: str) -> Version | None:
    """Returns the newest version that a package.json range allows, with 999,999 for any part.

    Returns None if the range has no upper bound or isn't understood.
    """
    newest: Version = (0, 0, 0)
    for part in wanted.split("||"):
        upper = _upper_end(part.strip().removeprefix("npm:"))
        if upper is None:
            return None
        newest = max(newest, upper)
    return newest


def show_newest(wanted: str) -> str | None:
    """Returns the newest version that a package.json range allows, with `x` for any part: `1.x`, or `1.2.3`."""
    newest = newest_allowed(wanted)
    if newest is None:
        return None
    shown = [str(part) for part in newest if part != _ENDLESS]
    return ".".join([*shown, "x"] if len(shown) < len(newest) else shown)


def _upper_end(part: str) -> Version | None:
    sign = part[:1] if part[:1] in "^~=" else ""
    version = parse(part[len(sign) :])
    match = _VERSION.fullmatch(part[len(sign) :].strip())
    if version is None or match is None:
        return None
    written = sum(bool(group and group.isdigit()) for group in match.groups())
    major, minor, patch = version
    if sign == "^" and major:
        return major, _ENDLESS, _ENDLESS
    if written == 1:
        return major, _ENDLESS, _ENDLESS
    if written == 2 or sign == "~" or (sign == "^" and minor):
        return major, minor, _ENDLESS
    return major, minor, patch


def outdated_address(text: str) -> tuple[Library, str] | None:
    """Returns the outdated library in an address of a public CDN and its version, or None."""
    match = _ADDRESS.search(text)
    if not match:
        return None
    name, version = (match[1], match[2]) if match[1] else (match[3], match[4]) if match[3] else (match[5], match[6])
    if "/gh/orestbida/" in match[0].lower():
        name = "vanilla-cookieconsent"
    library = libraries().get(_OTHER_NAMES.get(name.lower(), name.lower()))
    if library is None:
        return None
    parsed = parse(version.rstrip("."))
    # A range such as @2 counts only if the newest version it allows is outdated, too.
    if library.unmaintained or (parsed and library.outdated(parsed) and newest_is_outdated(library, version)):
        return library, version
    return None


def newest_is_outdated(library: Library, wanted: str) -> bool:
    newest = newest_allowed(wanted)
    return newest is not None and library.outdated(newest)


def locked_versions(text: str, known: Container[str]) -> Iterator[tuple[int, str, str]]:
    """Yields (line from 1, package, version) for every known package in a lock file of npm, yarn, or pnpm."""
    package: str | None = None
    at = 0
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > 500:
            continue
        if match := _LOCKED.match(line):
            package = match["npm"] or match["yarn"] or match["pnpm"]
            at = number
            if package is not None and match["exact"] and package in known:
                yield at, package, match["exact"]
                package = None
        elif package is None or package not in known or number - at > 3:
            continue
        elif version := _LOCKED_VERSION.match(line):
            yield at, package, version[1]
            package = None


OUTDATED: Final = "consent-library-outdated"
LOCKED: Final = "consent-library-outdated-in-lock-file"
UNMAINTAINED: Final = "consent-library-unmaintained"

_MANIFEST_VERSION: Final = re.compile(r'\s*+:\s*+"[^"\n]*+"')
_NEW_LINE: Final = re.compile("\n")
_GROUPS: Final = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")


@dataclass(frozen=True, slots=True)
class Pinned:
    """A library in a manifest or lock file, and the rule that it breaks, if any."""

    library: Library
    version: str
    rule_id: str | None
    # Character offsets in the file.
    start: int
    end: int


def read_manifest(text: str) -> Iterator[Pinned]:
    """Yields the consent libraries of a package.json. Yields nothing if it is invalid."""
    try:
        manifest: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(manifest, dict):
        return
    for group in _GROUPS:
        wanted = manifest.get(group)
        for package, written in wanted.items() if isinstance(wanted, dict) else ():
            library = libraries().get(package)
            if library is None or not isinstance(written, str):
                continue
            start, end = _place(text, package)
            yield Pinned(library, written, _rule_of(library, written), start, end)


def _place(text: str, package: str) -> tuple[int, int]:
    """Returns the range of the package and its version in the manifest, or (0, 0) if the spelling is unusual."""
    quoted = f'"{package}"'
    start = text.find(quoted)
    while start >= 0:
        version = _MANIFEST_VERSION.match(text, start + len(quoted))
        if version:
            return start, version.end()
        start = text.find(quoted, start + 1)
    return 0, 0


def _rule_of(library: Library, written: str) -> str | None:
    if library.unmaintained:
        return UNMAINTAINED
    return OUTDATED if newest_is_outdated(library, written) else None


def read_lock_file(text: str) -> Iterator[Pinned]:
    """Yields the outdated consent libraries of a lock file."""
    starts: list[int] | None = None
    for line, package, version in locked_versions(text, libraries()):
        library = libraries()[package]
        parsed = parse(version)
        if parsed is None or not library.outdated(parsed):
            continue
        if starts is None:
            starts = [0, *(match.end() for match in _NEW_LINE.finditer(text))]
        start = starts[line - 1]
        end = text.find("\n", start)
        yield Pinned(library, version, LOCKED, start, end if end >= 0 else len(text))

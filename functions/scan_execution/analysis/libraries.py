"""Versions of consent libraries: which are outdated, and where a version is written down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from scan_execution.analysis.reading import load_yaml

LIBRARIES: Final = Path(__file__).parents[1] / "consent-libraries.yaml"

type Version = tuple[int, int, int]

_VERSION: Final = re.compile(r"v?(\d{1,6})(?:\.(\d{1,6}|[x*]))?(?:\.(\d{1,6}|[x*]))?(?:[-+][\w.+-]*)?")
_ADDRESS: Final = re.compile(
    r"(?:/npm/|unpkg\.com/|esm\.sh/|skypack\.dev/)((?:@[\w.-]+/)?[\w.-]+)@v?(\d[\w.]*)"
    r"|/ajax/libs/([\w.-]+)/v?(\d[\w.]*)/|/(?:gh/[\w.-]+)/([\w.-]+)@v?(\d[\w.]*)",
    re.IGNORECASE,
)
# What cdnjs and GitHub call a package that npm knows by another name.
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
        )
        for entry in load_yaml(LIBRARIES)
    }


def parse(text: str) -> Version | None:
    """A version; missing parts are 0. None for what is no version."""
    match = _VERSION.fullmatch(text.strip())
    if not match:
        return None
    major, minor, patch = (int(part) if part and part.isdigit() else 0 for part in match.groups())
    return major, minor, patch


def newest_allowed(wanted: str) -> Version | None:
    """The newest version that a range of package.json lets in, as far as it matters; None where it has no upper end."""
    newest: Version = (0, 0, 0)
    for part in wanted.split("||"):
        upper = _upper_end(part.strip().removeprefix("npm:"))
        if upper is None:
            return None
        newest = max(newest, upper)
    return newest


def _upper_end(part: str) -> Version | None:
    endless = 999_999
    sign = part[:1] if part[:1] in "^~=" else ""
    version = parse(part[len(sign) :])
    match = _VERSION.fullmatch(part[len(sign) :].strip())
    if version is None or match is None:
        return None
    written = sum(bool(group and group.isdigit()) for group in match.groups())
    major, minor, patch = version
    if sign == "^" and major:
        return major, endless, endless
    if written == 1:
        return major, endless, endless
    if written == 2 or sign == "~" or (sign == "^" and minor):
        return major, minor, endless
    return major, minor, patch


def outdated_address(text: str) -> tuple[Library, str] | None:
    """The outdated library that an address of a public CDN names with its version."""
    match = _ADDRESS.search(text)
    if not match:
        return None
    name, version = (match[1], match[2]) if match[1] else (match[3], match[4]) if match[3] else (match[5], match[6])
    library = libraries().get(_OTHER_NAMES.get(name.lower(), name.lower()))
    if library is None:
        return None
    parsed = parse(version.rstrip("."))
    # A range, as in @2: what it may still become is behind as well.
    if library.unmaintained or (parsed and library.outdated(parsed) and newest_is_outdated(library, version)):
        return library, version
    return None


def newest_is_outdated(library: Library, wanted: str) -> bool:
    newest = newest_allowed(wanted)
    return newest is not None and library.outdated(newest)


def locked_versions(text: str) -> Iterator[tuple[int, str, str]]:
    """(line from 1, package, version) of every known library in a lock file of npm, yarn or pnpm."""
    known = libraries()
    package: str | None = None
    at = 0
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > 500:
            continue
        if match := _LOCKED.match(line):
            package = match["npm"] or match["yarn"] or match["pnpm"]
            at = number
            if match["exact"] and package in known:
                yield at, package, match["exact"]
                package = None
        elif package in known and (version := _LOCKED_VERSION.match(line)) and number - at <= 3:
            yield at, package, version[1]
            package = None

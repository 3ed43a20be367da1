"""Package manifests and lock files: finds the consent libraries that a project depends on, and their versions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from openassent_analysis.libraries import (
    Library,
    libraries,
    locked_versions,
    newest_is_outdated,
    parse,
)

OUTDATED: Final = "consent-library-outdated"
LOCKED: Final = "consent-library-outdated-in-lock-file"
UNMAINTAINED: Final = "consent-library-unmaintained"

_VERSION: Final = re.compile(r'\s*+:\s*+"[^"\n]*+"')
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
        version = _VERSION.match(text, start + len(quoted))
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

"""Package manifests and lock files: which consent library a project depends on, and in which version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from scan_execution.analysis.libraries import (
    Library,
    libraries,
    locked_versions,
    newest_is_outdated,
    parse,
)

OUTDATED: Final = "consent-library-outdated"
LOCKED: Final = "consent-library-outdated-in-lock-file"
UNMAINTAINED: Final = "consent-library-unmaintained"

_GROUPS: Final = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")


@dataclass(frozen=True, slots=True)
class Pinned:
    """A library that a manifest or lock file names, and the rule that it breaks, if it breaks one."""

    library: Library
    version: str
    rule_id: str | None
    # Characters of the file.
    start: int
    end: int


def read_manifest(text: str) -> Iterator[Pinned]:
    """The consent libraries of a package.json; nothing where it is not one."""
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
            place = re.search(rf'"{re.escape(package)}"\s*:\s*"[^"\n]*"', text)
            start, end = place.span() if place else (0, 0)
            yield Pinned(library, written, _rule_of(library, written), start, end)


def _rule_of(library: Library, written: str) -> str | None:
    if library.unmaintained:
        return UNMAINTAINED
    return OUTDATED if newest_is_outdated(library, written) else None


def read_lock_file(text: str) -> Iterator[Pinned]:
    """The outdated consent libraries of a lock file."""
    starts: list[int] | None = None
    for line, package, version in locked_versions(text):
        library = libraries()[package]
        parsed = parse(version)
        if parsed is None or not library.outdated(parsed):
            continue
        if starts is None:
            starts = [0, *(match.end() for match in re.finditer("\n", text))]
        start = starts[line - 1]
        end = text.find("\n", start)
        yield Pinned(library, version, LOCKED, start, end if end >= 0 else len(text))

"""Counts a project's files by the kind of code: analyzed ones, and others.

Without it, 0 findings in a project of a language that no rule reads would look like a clean bill of health.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from openassent_analysis.inventory.technologies import technologies
from openassent_analysis.templates.dialects import dialect_of

_SCRIPTS: Final = "JavaScript and TypeScript"
_BY_LANGUAGE: Final = {
    **dict.fromkeys(("javascript", "typescript", "tsx"), _SCRIPTS),
    "python": "Python",
    **dict.fromkeys(("manifest", "lock file"), "package manifests"),
}
_CONFIGURATION: Final = "configuration"
# Files of these languages load nothing on a page, and run in no visitor's browser or app.
_LOADS_NOTHING: Final = frozenset({
    "C", "C++", "CSS", "Dockerfile", "GraphQL", "HCL", "Julia", "Less", "Lua", "Makefile", "Nim", "OCaml", "PowerShell",
    "R", "Sass", "Shell", "Solidity", "SQL", "Stylus", "Zig",
})  # fmt: skip
# Prose may contain scripts, but most of them are documentation.
_PROSE: Final = {
    **dict.fromkeys(("md", "mdx", "markdown", "mdoc"), "Markdown and MDX"),
    **dict.fromkeys(("rst", "adoc", "asciidoc", "textile"), "reStructuredText and AsciiDoc"),
}
# Why a file of a known kind isn't analyzed, although its people wrote it.
NOT_ASSESSED: Final = frozenset({
    "too large", "unreadable", "not text", "line too long", "minified", "nested too deep", "too slow",
    "needed too much memory", "failed", "too many files", "too many bytes", "out of time",
})  # fmt: skip


@dataclass(slots=True)
class Kind:
    """The number of files of a kind that were analyzed, and of those that weren't."""

    analyzed: int = 0
    not_assessed: int = 0


def kind_of(path: str, language: str | None) -> str | None:
    """Returns the kind of a file that is read as a language (`files.language_of`), or that no rule reads.

    Returns None for data, styles, and other files that load nothing.
    """
    if dialect := dialect_of(path):
        return dialect.kind if language in {"html", "javascript", "typescript"} else None
    if language is not None:
        return _BY_LANGUAGE.get(language, _CONFIGURATION)
    name = path.rpartition("/")[2]
    if prose := _PROSE.get(name.rpartition(".")[2].lower()):
        return prose
    known = technologies().language_of(name) if "." in name else None  # Gemfile and the like are manifests
    return None if known in _LOADS_NOTHING else known


def is_read_in_part(path: str) -> bool:
    """Returns whether only the markup in the file's strings is read. Such a file counts as not assessed."""
    dialect = dialect_of(path)
    return dialect is not None and dialect.in_strings


def count(kinds: dict[str, Kind], kind: str | None, *, analyzed: bool) -> None:
    if kind is not None:
        counted = kinds.setdefault(kind, Kind())
        if analyzed:
            counted.analyzed += 1
        else:
            counted.not_assessed += 1


def with_not_assessed(kinds: Mapping[str, Kind], more: Mapping[str, int]) -> dict[str, Kind]:
    """Returns the counts with further files that weren't analyzed, for example those that were never unpacked."""
    names = sorted({*kinds, *more})
    none = Kind()
    return {
        name: Kind(kinds.get(name, none).analyzed, kinds.get(name, none).not_assessed + more.get(name, 0))
        for name in names
    }

"""Selects what a scan reads and reports: files by globs, rules, severities, and vendors.

A repository's `.assent.yml` (see `project_file`) and the options of the command line both become a `Selection`. All
globs are relative to the root of the repository and have the syntax of .gitignore.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final

from openassent_analysis import files
from openassent_analysis.catalogue import Vendor
from openassent_analysis.files import Listed
from openassent_analysis.reading import pattern_of
from openassent_analysis.report import OWN_VENDORS, Answer, Examine, Request

# The file at the root of a repository with its settings, see `project_file`.
PROJECT_FILE: Final = ".assent.yml"
# A file that `exclude` names.
EXCLUDED: Final = "excluded"
# The severity of rules whose findings are suppressed.
OFF: Final = "off"
# Folders that are never read.
_NEVER: Final = "repository data"
_MAX_GLOB: Final = 300
# More would make matching slow: each can match any number of folders.
_MAX_DEEP: Final = 2
_PART: Final = re.compile(r"\*+|\?|\[[!^]?\]?[^\]/]{0,60}\]|\\.|[^*?\\\[]+|[\\\[]", re.DOTALL)
# Characters with a meaning in the classes of expressions, and not in those of globs.
_SPECIAL_IN_CLASS: Final = re.compile(r"[\[\\&~|]|-(?=-)")


class InvalidGlob(ValueError):
    """The glob can't be matched; the argument says why."""


@dataclass(frozen=True)
class Selection:
    """The files that a scan reads, and the findings that it reports.

    exclude: files that aren't read, even if `include` names them. include: files that are read although their folders
    or names say that they are tests, build output, or copies. rules: only these are reported, or all if it is None.
    severities: by rule; OFF suppresses its findings. vendors: the project's own, besides the catalog's. accepted: the
    reasons, by ID of a vendor whose loads are suppressed. prefix: the path of the scanned folder in the repository,
    empty or with a slash at the end.

    Raises InvalidGlob.
    """

    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    rules: frozenset[str] | None = None
    severities: Mapping[str, str] = field(default_factory=dict)
    vendors: tuple[Vendor, ...] = ()
    accepted: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""

    def __post_init__(self) -> None:
        for glob in (*self.exclude, *self.include):
            expression_of(glob)

    def narrowed(
        self, exclude: Sequence[str] = (), include: Sequence[str] = (), rules: Collection[str] = ()
    ) -> Selection:
        """Returns the selection with further globs, and for findings of some rules only, if any are given."""
        only = frozenset(rules) if rules else self.rules
        return replace(self, exclude=(*self.exclude, *exclude), include=(*self.include, *include), rules=only)

    def reason_to_skip(self, path: str) -> str | None:
        """Returns why a file is skipped, or None. The path is relative to the scanned folder."""
        if self._excluded and self._excluded.search(self.prefix + path):
            return EXCLUDED
        reason = files.reason_to_skip(path)
        if reason is None or reason == _NEVER or not self._included:
            return reason
        return None if self._included.search(self.prefix + path) else reason

    def with_conventions(self, listed: Iterable[Listed]) -> list[Listed]:
        """Adds the reason to the files that are skipped by convention, except to those that are included."""
        found = files.with_conventions(listed)
        if not self._included:
            return found
        return [
            (path, place, None if place is not None and self._included.search(self.prefix + path) else reason)
            for path, place, reason in found
        ]

    def reads(self, path: str) -> bool:
        """Returns whether a file at the path is analyzed, unless it is too large or can't be read."""
        return self.reason_to_skip(path) is None and files.language_of(path.rpartition("/")[2]) is not None

    def reason_to_skip_folder(self, path: str) -> str | None:
        """Returns why nothing in a folder is read, or None. The path has a slash at the end."""
        reason = files.reason_to_skip_folder(path)
        if reason is None or reason == _NEVER or not self._included:
            return reason
        whole = self.prefix + path
        is_above = any(glob.lstrip("/").startswith(whole) for glob in self.include)
        return None if is_above or self._included.search(whole) else reason

    @cached_property
    def _excluded(self) -> re.Pattern[str] | None:
        return _pattern_of(self.exclude)

    @cached_property
    def _included(self) -> re.Pattern[str] | None:
        return _pattern_of(self.include)


EVERYTHING: Final = Selection()


def knowing(examine: Examine, vendors: Sequence[Vendor]) -> Examine:
    """Returns `examine` for a project with vendors of its own, which the sandboxed process learns with each file."""
    if not vendors:
        return examine
    prefix = f"{OWN_VENDORS}{json.dumps([asdict(vendor) for vendor in vendors])}\n"

    def examined(requests: Iterator[Request], deadline: float) -> Iterator[Answer]:
        with_vendors = (request._replace(language=prefix + request.language) for request in requests)
        for request, outcome in examine(with_vendors, deadline):
            yield request._replace(language=request.language.removeprefix(prefix)), outcome

    return examined


@lru_cache(maxsize=1)
def read_vendors(written: str) -> tuple[Vendor, ...]:
    """Returns the vendors that `knowing` has written."""
    return tuple(
        Vendor(it["id"], it["name"], it["category"], tuple(it["domains"]), tuple(it["packages"]))
        for it in json.loads(written)
    )


def _pattern_of(globs: Sequence[str]) -> re.Pattern[str] | None:
    return pattern_of("\n".join(map(expression_of, globs))) if globs else None


def expression_of(glob: str) -> str:
    """Returns the expression to search a path for, which also matches everything in a matching folder.

    Matching takes linear time for each of the glob's parts, because a star never gives back what it has matched.
    Raises InvalidGlob.
    """
    if len(glob) > _MAX_GLOB:
        raise InvalidGlob(f"it has more than {_MAX_GLOB} characters")
    if not glob.isprintable():
        raise InvalidGlob("it must be one line of text")
    if glob.startswith("!"):
        raise InvalidGlob("globs that begin with ! aren't supported. Use include")
    is_folder = glob.endswith("/")
    parts = glob.strip("/").split("/")
    if not any(parts):
        raise InvalidGlob("it matches nothing")
    if parts.count("**") > _MAX_DEEP:
        raise InvalidGlob(f"it has more than {_MAX_DEEP} times **")
    is_anchored = "/" in glob.rstrip("/")
    written = "^" if is_anchored else "(?:^|/)"
    if parts[-1] == "**" and len(parts) > 1:
        parts, is_folder = parts[:-1], True
    for index, part in enumerate(parts):
        if part == "**" and index < len(parts) - 1:
            written += "(?:[^/]++/)*"
        else:
            written += _part(part) + ("/" if index < len(parts) - 1 else "")
    written += "/" if is_folder else "(?:/|$)"
    try:
        pattern_of(written)
    except re.error as failure:
        raise InvalidGlob("it isn't a glob") from failure
    return written


def _part(part: str) -> str:
    """Returns the expression for the part of a glob between two slashes."""
    pieces: list[str] = [""]
    for piece in _PART.findall(part):
        if piece.startswith("*"):
            pieces.append("")
        elif piece == "?":
            pieces[-1] += "[^/]"
        elif piece.startswith("[") and piece.endswith("]"):
            inside = _SPECIAL_IN_CLASS.sub(r"\\\g<0>", piece[1:-1])
            is_negated = inside.startswith(("!", "^"))
            pieces[-1] += f"(?!/)[{'^' if is_negated else ''}{inside[is_negated:]}]"
        else:
            pieces[-1] += re.escape(piece[1:] if piece.startswith("\\") and len(piece) > 1 else piece)
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    # As `fnmatch` does: what is between two stars is taken where it comes first.
    return first + "".join(f"(?>[^/]*?{it})" for it in middle if it) + f"[^/]*{last}"

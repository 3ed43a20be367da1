"""Recognizes earlier findings, also in renamed files and edited code.

The analysis computes a fingerprint from a finding's place: its rule, path, and code. A finding keeps the fingerprint
that it was first seen with. If its file is renamed or its code is edited, what was recorded of it names its new place,
and the place that it left is free for another finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple, Protocol, TypeVar

from openassent_analysis.findings import Finding
from openassent_analysis.judgment import MISSING
from openassent_analysis.selection import EVERYTHING, EXCLUDED, Selection

# The path of a finding about the project as a whole.
WHOLE_PROJECT: Final = ""


class Recorded(Protocol):
    """An earlier finding, as it is recorded.

    path: what its existence depends on, see `dependency`. place: the fingerprint of its place, if it isn't its own.
    gone: set if the last scan didn't find it.
    """

    @property
    def fingerprint(self) -> str: ...
    @property
    def rule_id(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def shape(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def place(self) -> str | None: ...
    @property
    def gone(self) -> object: ...


_Known = TypeVar("_Known", bound=Recorded)


def dependency(rule_id: str, path: str) -> str:
    """Returns the path that the existence of the rule's finding at a path depends on."""
    return WHOLE_PROJECT if rule_id == MISSING else path


def covers(
    path: str,
    uncertain: Collection[str],
    root_directory: str | None = None,
    *,
    asks_for_consent: bool,
    selection: Selection = EVERYTHING,
) -> bool:
    """Returns whether a scan of the files below `root_directory` knows all findings at the path.

    It does if the file no longer exists or is excluded, and doesn't if the file is one of `uncertain`. path: as of
    `dependency`. asks_for_consent: whether any file takes part in that.
    """
    if path == WHOLE_PROJECT:
        return asks_for_consent or not uncertain
    root = PurePosixPath(root_directory or "")
    is_read = selection.reason_to_skip(path) in {None, EXCLUDED}
    return PurePosixPath(path).is_relative_to(root) and path not in uncertain and is_read


def identify(
    found: Sequence[Finding], history: Mapping[str, _Known], is_gone: Callable[[_Known], bool]
) -> dict[str, str]:
    """Returns the fingerprint that identifies each finding, by the fingerprint of its place.

    A new finding continues one that is gone and has the same content or shape, each at most one.
    """
    moved = {known.fingerprint: known.place for known in history.values() if known.place}
    tenants = {place: fingerprint for fingerprint, place in moved.items()}

    def identity_of(place: str) -> str:
        if place in tenants:
            return tenants[place]
        while place in moved:  # its own finding is elsewhere, so it has the fingerprint of the place there, and so on
            place = moved[place]
        return place

    identities = {finding.fingerprint: identity_of(finding.fingerprint) for finding in found}
    reported = set(identities.values())
    left = [
        known for known in history.values()
        if known.content and known.gone is None and known.fingerprint not in reported and is_gone(known)
    ]  # fmt: skip
    new = [finding for finding in found if identities[finding.fingerprint] not in history]
    for known, finding in _pairs(left, new):
        identities[finding.fingerprint] = known.fingerprint
    return identities


def _pairs(left: Sequence[_Known], new: Sequence[Finding]) -> Iterator[tuple[_Known, Finding]]:
    """Yields each finding that is gone with the new one that continues it.

    They have the same content and the most similar path, or else the same shape in the same file or one that was moved.
    """
    before = {known.fingerprint: _Place(known.content, known.path, known.ordinal, known.shape) for known in left}
    after = {
        finding.fingerprint: _Place(finding.content, finding.location.path, finding.ordinal, finding.shape)
        for finding in new
    }
    known_by_fingerprint = {known.fingerprint: known for known in left}
    finding_by_fingerprint = {finding.fingerprint: finding for finding in new}
    for key in _SIMILARITIES:
        sources, targets = _grouped(before, key), _grouped(after, key)
        for shared in (sources.keys() & targets.keys()) - {None}:
            for source, target in zip(sources[shared], targets[shared], strict=False):
                del before[source], after[target]
                yield known_by_fingerprint[source], finding_by_fingerprint[target]


class _Place(NamedTuple):
    content: str
    path: str
    ordinal: int
    shape: str

    def end(self, count: int) -> tuple[str, ...]:
        return PurePosixPath(self.path).parts[-count:]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


# Properties that two places share, the most similar places first. The ordinal distinguishes equal code in one file.
_SIMILARITIES: tuple[Callable[[_Place], object], ...] = (
    lambda place: (place.content, place.end(3), place.ordinal),
    lambda place: (place.content, place.end(2), place.ordinal),
    lambda place: (place.content, place.end(1), place.ordinal),
    lambda place: (place.content, place.end(1)),
    lambda place: (place.content, place.folder, place.ordinal),
    lambda place: (place.content, place.ordinal),
    lambda place: place.content,
    lambda place: (place.shape, place.path) if place.shape else None,
    lambda place: (place.shape, place.end(3)) if place.shape else None,
    lambda place: (place.shape, place.end(2)) if place.shape else None,
    lambda place: (place.shape, place.end(1)) if place.shape else None,
)


def _grouped(places: Mapping[str, _Place], key: Callable[[_Place], object]) -> dict[object, list[str]]:
    """Returns the fingerprints by key, in an order that doesn't depend on the order of the places."""
    groups = defaultdict(list)
    for fingerprint in sorted(places, key=lambda it: (*places[it][1:], it)):
        groups[key(places[fingerprint])].append(fingerprint)
    return groups

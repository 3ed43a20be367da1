"""Recognizes findings of earlier scans, also in renamed files and edited code, and tells which of them are gone.

The analysis computes a fingerprint from a finding's place: its rule, path, and code. A finding keeps the fingerprint
that it was first seen with. If its file is renamed or its code is edited, the history names its new place, and the
place that it left is free for another finding.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from controlplane.store.scans.history import WHOLE_PROJECT, HistoryItem
from controlplane.store.scans.items import ScanItem
from scan_execution.analysis import Finding
from scan_execution.analysis.files import reason_to_skip
from scan_execution.analysis.judgment import MISSING


class Sight(NamedTuple):
    """A scan's field of view: the files below `root_directory`, except those in `uncertain`.

    linked: the projects that the repository is linked to. asks_for_consent: whether any file takes part in that.
    """

    project_id: str
    root_directory: str | None
    uncertain: Collection[str]
    linked: Collection[str]
    asks_for_consent: bool

    def covers(self, path: str | None) -> bool:
        """Returns whether the scan knows all findings at the path, also because the file no longer exists.

        path: None if it is unknown.
        """
        if path == WHOLE_PROJECT:
            return self.asks_for_consent or not self.uncertain
        if path is None:
            return self.root_directory is None and not self.uncertain
        root = PurePosixPath(self.root_directory or "")
        return PurePosixPath(path).is_relative_to(root) and path not in self.uncertain and not reason_to_skip(path)

    def misses(self, known: HistoryItem) -> bool:
        """Returns whether a finding that the scan didn't report is gone: no other linked project still has it."""
        elsewhere = set(known.project_ids) & set(self.linked) - {self.project_id}
        return not elsewhere and self.covers(known.path)


def dependency(rule_id: str | None, path: str) -> str:
    """Returns the path that the existence of the rule's finding at a path depends on."""
    return WHOLE_PROJECT if rule_id == MISSING else path


def identify(
    found: Sequence[Finding], history: Mapping[str, HistoryItem], is_gone: Callable[[HistoryItem], bool]
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


def _pairs(left: Sequence[HistoryItem], new: Sequence[Finding]) -> Iterator[tuple[HistoryItem, Finding]]:
    """Yields each finding that is gone with the new one that continues it.

    They have the same content and the most similar path, or else the same shape in the same file or one that was moved.
    """
    before = {
        known.fingerprint: _Place(known.content or "", known.path or "", known.ordinal, known.shape or "")
        for known in left
    }
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
    yield from _without_shape([known_by_fingerprint[it] for it in before], [finding_by_fingerprint[it] for it in after])


def _without_shape(left: Sequence[HistoryItem], new: Sequence[Finding]) -> Iterator[tuple[HistoryItem, Finding]]:
    """Yields pairs for items of earlier releases, which have no shape: the only finding of a rule in its file."""
    by_place = defaultdict(list)
    for known in left:
        by_place[known.rule_id, known.path].append(known)
    found: dict[tuple[str | None, str | None], list[Finding]] = defaultdict(list)
    for finding in new:
        found[finding.rule_id, finding.location.path].append(finding)
    for place, [known, *others] in by_place.items():
        continuing = found.get(place, [])
        if not others and len(continuing) == 1 and known.shape is None and continuing[0].shape:
            yield known, continuing[0]


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


# What two places have in common, the most similar first. The ordinal distinguishes equal code in one file.
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


def found_again(
    scan: ScanItem, finding: Finding, fingerprint: str, known: HistoryItem | None, linked: Collection[str]
) -> HistoryItem:
    """Returns the history of a finding that the scan found, at the place where it found it."""
    item = known or HistoryItem(
        repository_id=scan.repository_id, fingerprint=fingerprint, first_seen_at=scan.created_at
    )
    return replace(
        item,
        rule_id=finding.rule_id,
        content=finding.content,
        ordinal=finding.ordinal,
        shape=finding.shape,
        path=dependency(finding.rule_id, finding.location.path),
        place=None if finding.fingerprint == fingerprint else finding.fingerprint,
        project_ids=tuple(sorted({*item.project_ids} & {*linked} | {scan.project_id})),
        gone=None,
        unsettled=False,
    )

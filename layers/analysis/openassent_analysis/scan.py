"""Analyzes a whole tree, one file at a time, and returns the findings and a summary of skipped files.

Reads the files and combines the reports on them. It must not parse them: `examine` does, in another process.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from openassent_analysis import files
from openassent_analysis.catalogue import catalogue, own_vendors
from openassent_analysis.files import Listed, Skipped
from openassent_analysis.findings import Analysis, Finding, Loads, Location, priority_of, urgency
from openassent_analysis.following import Following
from openassent_analysis.gating import OPEN, Gating
from openassent_analysis.importing import Importing
from openassent_analysis.judgment import MISSING, missing_consent_manager, with_confidence
from openassent_analysis.kinds import NOT_ASSESSED, count, is_read_in_part, kind_of
from openassent_analysis.libraries import LOCKED, OUTDATED, UNMAINTAINED, families, libraries
from openassent_analysis.limits import Limits
from openassent_analysis.links import Links, Verdict
from openassent_analysis.report import (
    Address,
    Entry,
    Examine,
    InvalidReport,
    Load,
    Match,
    Report,
    Request,
    has_loader,
)
from openassent_analysis.rules import Rule, rules
from openassent_analysis.selection import EVERYTHING, Selection, knowing
from openassent_analysis.sites import Sites
from openassent_analysis.suppressions import Suppressions
from openassent_analysis.unknown import is_named_after, registrable
from openassent_analysis.unread_settings import SETTING, unread

# The best place to show that a library is outdated, by rule. Code is between manifests and lock files.
_PLACES: Final = {OUTDATED: 0, UNMAINTAINED: 0, LOCKED: 2}
# Conditions of rules about code that may wait for consent.
_ASKS: Final = frozenset({"ungated", "unchecked"})

# A partial that Hugo has, unless the site has one of that name.
_BUILT_IN: Final = re.compile(r"""\bpartial(?:Cached)?\s{1,9}["`](disqus|google_analytics)\.html""")
_HOST: Final = re.compile(r"[a-z0-9_.-]*")
_MAX_OWN_NAMES: Final = 1_000
_MAX_CHOICES: Final = 1_000
_MAX_HOSTS: Final = 3
# Files that may have the addresses of scripts, and files that may take addresses from others.
_DATA: Final = ".json"
_MAX_DATA: Final = 2_000
_MAX_WANTED: Final = 200


def analyze_folder(
    root: Path,
    examine: Examine,
    limits: Limits,
    repository: str = "",
    listed: Sequence[Listed] | None = None,
    *,
    lacks_files: bool = False,
    selection: Selection = EVERYTHING,
) -> Analysis:
    """Analyzes the files of a folder. Doesn't follow links or read anything outside of the folder.

    repository: OWNER/NAME, if it is known. listed: the files, instead of those that `files.walk` finds. lacks_files:
    whether the project has files that the folder doesn't have. selection: what to read and report.
    """
    scan = _Scan(limits, repository, lacks_files=lacks_files, selection=selection)
    if listed is None:
        listed = selection.with_conventions(files.walk(root, selection.reason_to_skip_folder))
    for path, place, reason in listed:
        if reason is not None:
            scan.skip(path, reason, exists=place is not None)

    def entries() -> Iterator[Entry]:
        for path, place, reason in listed:
            if reason is None and place is not None:
                yield path, partial(files.read, place)

    with own_vendors(selection.vendors):
        return scan.run(entries(), entries, knowing(examine, selection.vendors))


def analyze_files(contents: Iterable[tuple[str, bytes]], examine: Examine, limits: Limits) -> Analysis:
    """Analyzes (path, content) pairs, holding few at a time. Paths are relative, with forward slashes.

    Reads the pairs more than once, if that shows whether a finding waits for consent.
    """

    def bounded(content: bytes, most: int) -> bytes:
        if len(content) > most:
            raise Skipped("too large")
        return content

    scan = _Scan(limits)
    projects = files.projects_of(path for path, _ in contents)
    for path, _ in contents:
        if reason := files.reason_by_convention(path, projects):
            scan.skip(path, reason, exists=True)

    def entries() -> Iterator[Entry]:
        for path, content in contents:
            if not files.reason_by_convention(path, projects):
                yield path, partial(bounded, content)

    return scan.run(entries(), entries, examine)


@dataclass(frozen=True, slots=True)
class _Found:
    """A finding, and the conditions on the whole project under which it is reported."""

    finding: Finding
    # None if it doesn't matter whether the code runs.
    gating: Gating | None = None
    # False if the rule doesn't ask whether the code waits for consent.
    asks: bool = False
    depends_on_consent_mode: bool = False
    started: bool = False
    # The host of an unknown third party.
    host: str = ""
    # The setting that turns a tracker on, if a template of the site's own has to read it.
    setting: str = ""


class _Scan:
    def __init__(
        self, limits: Limits, repository: str = "", *, lacks_files: bool = False, selection: Selection = EVERYTHING
    ) -> None:
        self._limits = limits
        self._suppressions = Suppressions(selection)
        self._repository = repository
        self._deadline = time.monotonic() + limits.max_seconds
        self._result = Analysis(selection=selection, lacks_files=lacks_files)
        self._found_so_far: list[_Found] = []
        # An upgrade of a library is one finding, by the library's family: in a manifest rather than in code or a lock
        # file, and near the root.
        self._outdated: dict[str, tuple[tuple[int, int, str, int], _Found]] = {}
        self._consent_mode = False
        self._own_names: set[str] = set()
        # Names that server code gives the visitor's choice.
        self._choices: set[str] = set()
        self._sites = Sites()
        # Files of data, and the addresses that files take from others.
        self._data: set[str] = set()
        self._wanted: dict[str, list[Address]] = {}
        # Files that nothing is read from, for their paths.
        self._left_out: set[str] = set()

    def skip(self, path: str, reason: str, *, exists: bool = False) -> None:
        """Counts a skipped file. exists: whether an earlier scan may have reported findings in it."""
        if exists:
            self._result.uncertain.add(path)
        self._result.skipped[reason] += 1
        examples = self._result.skipped_examples.setdefault(reason, [])
        if len(examples) < self._limits.max_skipped_examples:
            examples.append(path[:300])

    def _skip_known(self, path: str, language: str, reason: str) -> None:
        """Skips a file of a known language, which isn't assessed then unless there is nothing in it."""
        self.skip(path, reason)
        if reason in NOT_ASSESSED:
            count(self._result.kinds, kind_of(path, language), analyzed=False)

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        return {rule.id: rule for rule in rules()}

    def run(self, entries: Iterable[Entry], again: Callable[[], Iterable[Entry]], examine: Examine) -> Analysis:
        """Returns the result for files. `again` returns the same files for another look at some of them."""
        for request, outcome in examine(self._requests(entries), self._deadline):
            try:
                if isinstance(outcome, Skipped):
                    raise outcome
                self._take(request, outcome)
            except Skipped as skipped:
                self._skip_known(request.path, request.language, str(skipped))
                if str(skipped) == "empty":
                    self._result.uncertain.discard(request.path)
            except InvalidReport:
                self._skip_known(request.path, request.language, "failed")
        self._found_so_far += [found for _, found in self._outdated.values()]

        def read_again() -> Iterator[Entry]:
            return (entry for entry in again() if entry[0] not in self._left_out)

        settings = unread((it.setting for it in self._found_so_far), self._result.paths, read_again, self._limits)
        self._found_so_far = [it for it in self._found_so_far if it.setting not in settings]
        return self._finish(self._linked(read_again, examine))

    def _linked(self, again: Callable[[], Iterable[Entry]], examine: Examine) -> Links:
        links = Links(self._result.paths, self._choices, self._sites)
        if self._wanted:
            importing = Importing(links, frozenset(self._data), again, examine, self._limits, self._deadline)
            for request, outcome in importing.read_again(self._wanted):
                if isinstance(outcome, Report):
                    self._take_again(request.path, outcome)
        undecided = ((found.finding.location.path, found.gating) for found in self._found_so_far if found.gating)
        Following(links, again, examine, self._limits, self._deadline).follow(undecided)
        return links

    def _requests(self, entries: Iterable[Entry]) -> Iterator[Request]:
        """Yields the files to analyze, each read on demand. Skips the rest if a limit of the whole scan is reached."""
        limits, result = self._limits, self._result
        end: str | None = None
        for path, read in entries:
            end = end or self._end_of_scan()
            result.files_seen += end is None
            language = files.language_of(path.rpartition("/")[2])
            if (reason := result.selection.reason_to_skip(path)) is not None:
                self._left_out.add(path)
            if language is None:
                if reason is None:
                    if path.endswith(_DATA) and len(self._data) < _MAX_DATA:
                        self._data.add(path)
                    count(result.kinds, kind_of(path, None), analyzed=False)
                continue
            if reason is not None:
                self.skip(path, reason)
                continue
            result.paths.append(path)
            result.uncertain.add(path)  # until its report is in
            if end is not None:
                self._skip_known(path, language, end)
                continue
            try:
                content = read(limits.max_lock_file_bytes if language == "lock file" else limits.max_file_bytes)
            except Skipped as skipped:
                self._skip_known(path, language, str(skipped))
                continue
            result.bytes_read += len(content)
            yield Request(path, language, content)

    def _end_of_scan(self) -> str | None:
        if self._result.files_seen >= self._limits.max_files:
            return "too many files"
        if self._result.bytes_read >= self._limits.max_total_bytes:
            return "too many bytes"
        if time.monotonic() > self._deadline:
            return "out of time"
        return None

    def _take(self, request: Request, report: Report) -> None:
        """Adds a report to the result. Raises InvalidReport if it refers to something that doesn't exist."""
        result, path = self._result, request.path
        found = self._all_found(path, report.matches)
        self._add_loads(path, report.loads)
        result.asks_for_consent |= report.asks_for_consent
        self._consent_mode = self._consent_mode or report.sets_consent_mode
        if len(self._own_names) < _MAX_OWN_NAMES:
            self._own_names.update(report.own_names)
        if len(self._choices) < _MAX_CHOICES:
            self._choices.update(report.choices)
        self._sites.add(path, report.traits)
        self._suppressions.add(path, report.ignores)
        if len(result.setups) < _MAX_CHOICES:
            result.setups.update(report.setups)
        result.truncated |= report.truncated
        result.lines += report.lines
        whole = not is_read_in_part(path)
        count(result.kinds, kind_of(path, request.language), analyzed=whole)
        if whole:
            result.files_analyzed += 1
        else:
            self.skip(path, files.NOT_ANALYZED)
        if not report.truncated:
            result.uncertain.discard(path)
        if report.addresses and len(self._wanted) < _MAX_WANTED:
            self._wanted[path] = report.addresses
        self._keep(found)

    def _take_again(self, path: str, report: Report) -> None:
        """Adds the results of a second report on a file, made with the addresses of other files."""
        known = {
            (found.finding.rule_id, found.finding.location.start_line)
            for found in self._found_so_far
            if found.finding.location.path == path
        }
        new = [match for match in report.matches if (match.rule_id, match.start_line) not in known]
        vendors = {match.vendor_id for match in new}
        with suppress(InvalidReport):
            found = self._all_found(path, new)
            self._add_loads(path, [load for load in report.loads if load.vendor_id in vendors])
            self._keep(found)

    def _all_found(self, path: str, matches: list[Match]) -> list[tuple[Match, _Found]]:
        """Returns each match with its finding. Raises InvalidReport if one refers to something that doesn't exist."""
        try:
            return [(match, self._found(path, match)) for match in matches]
        except (KeyError, ValueError, IndexError) as failure:
            raise InvalidReport from failure

    def _add_loads(self, path: str, loads: list[Load]) -> None:
        """Adds the file to the places of each vendor that it loads. Raises InvalidReport for an unknown vendor."""
        if any(load.vendor_id not in catalogue().vendors or not _HOST.fullmatch(load.host) for load in loads):
            raise InvalidReport
        for vendor_id, host in loads:
            found = self._result.loads.setdefault(vendor_id, Loads())
            found.places.setdefault(path, True)
            hosts = found.hosts
            if host and host not in hosts and len(hosts) < _MAX_HOSTS:
                hosts.append(host)

    def _found(self, path: str, match: Match) -> _Found:
        rule = self._rules[match.rule_id]
        if not _HOST.fullmatch(match.names.get("host", "")):
            raise ValueError(match.rule_id)
        library = libraries()[match.package] if match.package else None
        vendor = catalogue().vendors[match.vendor_id] if match.vendor_id else None
        severity = rule.severity_of(vendor)
        finding = Finding(
            rule.id,
            rule.title.format_map(match.names),
            rule.description_of(vendor, match.names),
            rule.category,
            severity,
            priority_of(severity, "high"),
            Location(
                path,
                match.start_line,
                match.end_line,
                match.start_column,
                match.end_column,
                match.snippet,
                tuple(match.around),
            ),
            rule.remediation.strip().format_map(match.names),
            tuple(filter(None, (library.reference if library else None, *rule.references))),
            match.fingerprint,
            match.content,
            match.ordinal,
            match.shape,
            (vendor.id,) if vendor else (),
            places=tuple(match.places),
        )
        asks = not _ASKS.isdisjoint(rule.where)
        runs = OPEN if rule.engine == "syntax" else None
        return _Found(
            finding,
            match.gating if asks else runs,
            asks,
            match.depends_on_consent_mode,
            match.started,
            match.names.get("host", ""),
            match.names.get(SETTING, ""),
        )

    def _keep(self, found: list[tuple[Match, _Found]]) -> None:
        for match, entry in found:
            if family := families().get(match.names.get("library", "")):
                path = entry.finding.location.path
                place = _PLACES.get(match.rule_id, 1), path.count("/"), path, match.start_line
                if family not in self._outdated or place < self._outdated[family][0]:
                    self._outdated[family] = place, entry
            else:
                self._found_so_far.append(entry)
        # Bounds memory during the scan, too: drops the least urgent findings first.
        most = 2 * self._limits.max_findings
        if len(self._found_so_far) > 2 * most:
            self._found_so_far.sort(key=lambda entry: urgency(entry.finding))
            self._drop(entry.finding for entry in self._found_so_far[most:])
            del self._found_so_far[most:]

    def _drop(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._result.truncated = True
            self._result.uncertain.add(finding.location.path)

    def _finish(self, links: Links) -> Analysis:
        loaded = set(self._result.loads)
        findings = []
        for found in self._found_so_far:
            judged = None if self._has_loader(found, loaded) else self._judged(found, links)
            if judged is None:
                continue
            findings.append(judged)
            if judged.category == "trackers":
                self._judge_places(judged)
        apply, most = self._suppressions.apply, self._limits.max_findings
        findings = apply(findings, self._result, most)
        findings += apply(self._missing_consent_manager(findings), self._result, most)
        wanted = self._result.selection.rules
        findings = sorted((it for it in findings if wanted is None or it.rule_id in wanted), key=urgency)
        self._drop(findings[most:])
        self._result.findings = findings[:most]
        self._result.notes += self._suppressions.notes(self._rules, self._result.findings)
        return self._result

    def _judged(self, found: _Found, links: Links) -> Finding | None:
        """Returns the finding with its confidence, or None if the project shows that it waits for consent.

        None, too, if an unknown third party is the project's own host, or if a partial of Hugo's is the site's own.
        """
        finding = found.finding
        if (found.host and self._is_own(found.host)) or self._is_replaced(finding):
            return None
        if found.gating is None:
            return finding
        verdict = links.verdict(finding.location.path, found.gating)
        if not found.asks:
            return with_confidence(finding, verdict) if verdict is Verdict.UNUSED else finding
        if verdict is Verdict.GATED:
            return None
        elsewhere = found.depends_on_consent_mode and self._consent_mode
        return with_confidence(finding, verdict, defaults_elsewhere=elsewhere)

    def _is_own(self, host: str) -> bool:
        name = registrable(host)
        return name in self._own_names or is_named_after(name, self._repository)

    def _is_replaced(self, finding: Finding) -> bool:
        partial_of_hugo = _BUILT_IN.search(finding.location.snippet)
        if partial_of_hugo is None:
            return False
        return any(path.endswith(f"partials/{partial_of_hugo[1]}.html") for path in self._result.paths)

    @staticmethod
    def _has_loader(found: _Found, loaded: AbstractSet[str]) -> bool:
        """Returns whether a finding is a mere start call, and something in the project loads the vendor's code."""
        return found.started and any(has_loader(vendor_id, loaded) for vendor_id in found.finding.vendor_ids)

    def _judge_places(self, judged: Finding) -> None:
        """Notes that the finding's vendors don't wait for consent in its file, or may not if that is uncertain."""
        path = judged.location.path
        for vendor_id in judged.vendor_ids:
            places = self._result.loads.setdefault(vendor_id, Loads()).places
            if judged.confidence != "low":
                places[path] = False
            elif places.get(path) is not False:
                places[path] = None

    def _missing_consent_manager(self, findings: list[Finding]) -> list[Finding]:
        if MISSING not in self._rules or self._result.asks_for_consent or self._result.incomplete:
            return []
        return missing_consent_manager(self._rules[MISSING], findings)

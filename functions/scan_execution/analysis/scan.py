"""A whole tree: one file at a time in, findings and an account of what was skipped out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scan_execution.analysis import files, manifests
from scan_execution.analysis.catalogue import catalogue
from scan_execution.analysis.engine import (
    Found,
    analyze_source,
    asks_for_consent,
    locate,
    sets_consent_mode,
    source_of,
)
from scan_execution.analysis.files import Skipped
from scan_execution.analysis.findings import Finding, urgency
from scan_execution.analysis.fingerprints import Fingerprints
from scan_execution.analysis.limits import Limits
from scan_execution.analysis.rules import Rule, rules

_MISSING: Final = "consent-manager-missing"
# A limit of the whole scan, after which no file is looked at.
_ENDS: Final = frozenset({"too many files", "too many bytes", "out of time"})


@dataclass
class Analysis:
    """What a scan came to."""

    # The most urgent first.
    findings: list[Finding] = field(default_factory=list)
    files_seen: int = 0
    files_analyzed: int = 0
    bytes_read: int = 0
    lines: int = 0
    # Files not looked at, by reason; a skipped folder counts as one. Files of other kinds are not counted.
    skipped: Counter[str] = field(default_factory=Counter)
    skipped_examples: dict[str, list[str]] = field(default_factory=dict)
    # True where there were more findings than are kept.
    truncated: bool = False

    @property
    def incomplete(self) -> bool:
        """True where a limit of the whole scan ended it before the last file."""
        return not _ENDS.isdisjoint(self.skipped)


def analyze_folder(root: Path, limits: Limits | None = None) -> Analysis:
    """The findings of a folder's files. Links are not followed; nothing outside of the folder is read."""
    scan = _Scan(limits or Limits())
    for path, entry, reason in files.walk(root):
        if reason is not None:
            scan.skip(path, reason)
        elif entry is not None:
            name = entry.path
            scan.take(path, lambda most, name=name: files.read(name, most))  # type: ignore[misc]
        if scan.ended:
            break
    return scan.finish()


def analyze_files(contents: Iterable[tuple[str, bytes]], limits: Limits | None = None) -> Analysis:
    """The findings of (path, content) pairs; paths are relative, with forward slashes. Holds one content at a time."""
    scan = _Scan(limits or Limits())
    for path, content in contents:

        def read(most: int, content: bytes = content) -> bytes:
            if len(content) > most:
                raise Skipped("too large")
            return content

        scan.take(path, read)
        if scan.ended:
            break
    return scan.finish()


class _Scan:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._deadline = time.monotonic() + limits.max_seconds
        self._result = Analysis()
        self._found: list[Found] = []
        self._locked: list[tuple[Found, str, str]] = []
        self._declared: set[tuple[str, str]] = set()
        self._rules: dict[str, Rule] = {rule.id: rule for rule in rules()}
        self._asks_for_consent = False
        self._consent_mode = False
        self.ended = False

    def skip(self, path: str, reason: str) -> None:
        self._result.skipped[reason] += 1
        examples = self._result.skipped_examples.setdefault(reason, [])
        if len(examples) < self._limits.max_skipped_examples:
            examples.append(path[:300])

    def take(self, path: str, read: Callable[[int], bytes]) -> None:
        """Looks at one file; `read` gives its content, given the most bytes it may have."""
        result = self._result
        if reason := self._end_of_scan():
            self.skip(path, reason)
            self.ended = True
            return
        result.files_seen += 1
        language = files.language_of(path.rpartition("/")[2])
        if language is None:
            return
        reason = files.reason_to_skip(path)
        if reason is not None:
            self.skip(path, reason)
            return
        try:
            self._look_at(path, language, read)
        except Skipped as skipped:
            self.skip(path, str(skipped))

    def _end_of_scan(self) -> str | None:
        if self._result.files_seen >= self._limits.max_files:
            return "too many files"
        if self._result.bytes_read >= self._limits.max_total_bytes:
            return "too many bytes"
        if time.monotonic() > self._deadline:
            return "out of time"
        return None

    def _look_at(self, path: str, language: str, read: Callable[[int], bytes]) -> None:
        limits, result = self._limits, self._result
        locked = language == "lock file"
        content = read(limits.max_lock_file_bytes if locked else limits.max_file_bytes)
        result.bytes_read += len(content)
        text = files.decode(content)
        if language in {"manifest", "lock file"}:
            self._read_manifest(path, text, locked=locked)
            result.lines += text.count("\n") + 1
        else:
            result.lines += files.check_lines(text, limits)
            source = source_of(path, text, language)
            self._asks_for_consent = self._asks_for_consent or asks_for_consent(source)
            self._consent_mode = self._consent_mode or sets_consent_mode(source)
            found = analyze_source(source, limits)
            result.truncated |= found.cut
            self._keep(found.found)
        result.files_analyzed += 1

    def _keep(self, found: list[Found]) -> None:
        self._found += found
        # What a scan keeps is bounded while it runs, too: the least urgent go first.
        if len(self._found) > 4 * self._limits.max_findings:
            self._found.sort(key=lambda entry: urgency(entry.finding))
            del self._found[2 * self._limits.max_findings :]
            self._result.truncated = True

    def _read_manifest(self, path: str, text: str, *, locked: bool) -> None:
        source = source_of(path, text, "manifest")
        fingerprints = Fingerprints(path)
        folder = path.rpartition("/")[0]
        for pinned in manifests.read_lock_file(text) if locked else manifests.read_manifest(text):
            self._asks_for_consent = True
            if pinned.rule_id is None:
                continue
            rule = self._rules[pinned.rule_id]
            library = pinned.library
            names = {"library": library.name, "version": pinned.version, "why": library.why}
            finding = Finding(
                rule.id,
                rule.title.format_map(names),
                rule.description.strip().format_map(names),
                rule.category,
                rule.severity,
                rule.priority,
                locate(source, pinned.start, pinned.end, self._limits),
                rule.remediation.strip().format_map(names),
                tuple(filter(None, (library.reference, *rule.references))),
                # The version is part of it: a newer version that is outdated as well is news.
                fingerprints.take(rule.id, f"{library.package} {pinned.version}"),
            )
            if locked:
                self._locked.append((Found(finding), folder, library.package))
            else:
                self._declared.add((folder, library.package))
                self._found.append(Found(finding))

    def finish(self) -> Analysis:
        # A lock file repeats what the manifest beside it says.
        self._found += [found for found, folder, package in self._locked if (folder, package) not in self._declared]
        findings = [found.finding for found in self._found if self._stands(found)]
        findings += self._missing_consent_manager(findings)
        findings.sort(key=urgency)
        result = self._result
        result.truncated |= len(findings) > self._limits.max_findings
        result.findings = findings[: self._limits.max_findings]
        return result

    def _stands(self, found: Found) -> bool:
        if found.depends_on_callers and self._asks_for_consent:
            return False
        return not (found.depends_on_consent_mode and self._consent_mode)

    def _missing_consent_manager(self, findings: list[Finding]) -> list[Finding]:
        trackers = sorted((finding for finding in findings if finding.category == "trackers"), key=urgency)
        rule = self._rules.get(_MISSING)
        if rule is None or not trackers or self._asks_for_consent or self._result.incomplete:
            return []
        known = catalogue().vendors
        vendors = sorted({known[finding.vendor_id].name for finding in trackers if finding.vendor_id})
        names = {"vendors": ", ".join(vendors[:5]) + (" and others" if len(vendors) > 5 else "")}
        return [
            Finding(
                rule.id,
                rule.title,
                rule.description.strip().format_map(names),
                rule.category,
                rule.severity,
                rule.priority,
                trackers[0].location,
                rule.remediation.strip(),
                rule.references,
                # One per project, wherever its trackers stand.
                Fingerprints("").take(rule.id, "project"),
            )
        ]

"""Decides which findings a comment in the code or the project's settings suppress, and says which comments don't work.

A suppressed finding is counted with its reason, so that a report never hides how much it leaves out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Final

from openassent_analysis.findings import (
    COMMENT,
    RULE,
    VENDOR,
    Analysis,
    Finding,
    Note,
    Suppressed,
    Suppression,
    priority_of,
    urgency,
)
from openassent_analysis.report import Ignore
from openassent_analysis.selection import OFF, Selection

# Accepting a vendor is about loading it. It doesn't excuse personal data in code that calls it.
_ABOUT_LOADING: Final = frozenset({"trackers", "banner"})
_MAX_FILES: Final = 2_000
_MAX_NOTES: Final = 100


class Suppressions:
    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._ignores: dict[str, list[Ignore]] = {}
        self._effective: set[tuple[str, Ignore]] = set()

    def add(self, path: str, ignores: list[Ignore]) -> None:
        """Adds the comments of a file."""
        if ignores and len(self._ignores) < _MAX_FILES:
            self._ignores[path] = ignores

    def apply(self, findings: Iterable[Finding], result: Analysis, most: int) -> list[Finding]:
        """Returns the findings to report, with the project's severities. Adds up to `most` others to the result."""
        reported = []
        for finding in map(self._graded, findings):
            if suppression := self._by_comment(finding) or self._by_settings(finding):
                result.suppressed.append(Suppressed(finding, suppression))
            else:
                reported.append(finding)
        result.suppressed = sorted(result.suppressed, key=lambda it: urgency(it.finding))[:most]
        return reported

    def _graded(self, finding: Finding) -> Finding:
        severity = self._selection.severities.get(finding.rule_id, OFF)
        if severity == OFF:
            return finding
        return replace(finding, severity=severity, priority=priority_of(severity, finding.confidence))

    def _by_settings(self, finding: Finding) -> Suppression | None:
        if self._selection.severities.get(finding.rule_id) == OFF:
            return Suppression(RULE, "The rule is off.")
        reasons = [self._selection.accepted.get(vendor_id) for vendor_id in finding.vendor_ids]
        if finding.category not in _ABOUT_LOADING or not reasons or None in reasons:
            return None
        return Suppression(VENDOR, " ".join(filter(None, dict.fromkeys(reasons))))

    def _by_comment(self, finding: Finding) -> Suppression | None:
        place = finding.location
        for ignore in self._ignores.get(place.path, ()):
            is_there = ignore.start_line <= place.end_line and place.start_line <= ignore.end_line
            if is_there and ignore.rule_id == finding.rule_id and ignore.reason:
                self._effective.add((place.path, ignore))
                return Suppression(COMMENT, ignore.reason)
        return None

    def notes(self, known: Container[str], reported: Iterable[Finding]) -> list[Note]:
        """Returns what is wrong with comments that have no effect. known: the IDs of all rules."""
        lines = {(it.location.path, it.rule_id): it.location.start_line for it in reported}
        found = []
        for path, ignores in sorted(self._ignores.items()):
            for ignore in ignores:
                if not ignore.reason:
                    text = "An assent-ignore comment has no effect without a reason. Write it after the rule and --."
                elif not ignore.rule_id:
                    text = "An assent-ignore comment names no rule."
                elif ignore.rule_id not in known:
                    text = f"An assent-ignore comment names {ignore.rule_id}, which isn't a rule."
                elif (path, ignore) not in self._effective and (line := lines.get((path, ignore.rule_id))):
                    text = f"An assent-ignore comment has no effect: {ignore.rule_id} reports line {line}."
                else:
                    continue
                found.append(Note(path, ignore.start_line, text))
        return found[:_MAX_NOTES]

"""Decides which findings a comment in the code or the project's settings suppress, and says which comments don't work.

A suppressed finding is counted with its reason, so that a report never hides how much it leaves out.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Final

from openassent_analysis.findings import COMMENT, Finding, Note, Suppression
from openassent_analysis.report import Ignore
from openassent_analysis.selection import Selection

_MAX_FILES: Final = 2_000
_MAX_NOTES: Final = 100


class Suppressions:
    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._ignores: dict[str, list[Ignore]] = {}

    def add(self, path: str, ignores: list[Ignore]) -> None:
        """Adds the comments of a file."""
        if ignores and len(self._ignores) < _MAX_FILES:
            self._ignores[path] = ignores

    def split(self, findings: Sequence[Finding]) -> Iterator[tuple[Finding, Suppression | None]]:
        """Yields the findings with the severities of the project, each with the reason to suppress it, or None."""
        for finding in findings:
            yield self._selection.graded(finding), self._by_comment(finding) or self._selection.suppression_of(finding)

    def _by_comment(self, finding: Finding) -> Suppression | None:
        place = finding.location
        for ignore in self._ignores.get(place.path, ()):
            is_there = ignore.start_line <= place.end_line and place.start_line <= ignore.end_line
            if is_there and ignore.rule_id == finding.rule_id and ignore.reason:
                return Suppression(COMMENT, ignore.reason)
        return None

    def notes(self, known: Container[str]) -> list[Note]:
        """Returns what is wrong with comments that have no effect. known: the IDs of all rules."""
        found = []
        for path, ignores in sorted(self._ignores.items()):
            for ignore in ignores:
                if not ignore.reason:
                    text = "An assent-ignore comment has no effect without a reason. Write it after the rule and --."
                elif not ignore.rule_id:
                    text = "An assent-ignore comment names no rule."
                elif ignore.rule_id not in known:
                    text = f"An assent-ignore comment names {ignore.rule_id}, which isn't a rule."
                else:
                    continue
                found.append(Note(path, ignore.start_line, text))
        return found[:_MAX_NOTES]

"""Compares a scan of a working tree with the findings of an earlier one, for example those in a file of the project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from openassent_analysis.identities import covers, dependency, identify
from openassent_analysis.working_tree import ReportedFinding, WorkingTreeScan


class InvalidBaseline(ValueError):
    """The findings aren't those that `ReportedFinding.as_dict` returns."""


class EarlierFinding(NamedTuple):
    """A finding of the baseline, by its identity. path: the file that it depends on, see `identities`."""

    fingerprint: str
    rule_id: str
    title: str
    content: str
    ordinal: int
    shape: str
    path: str
    place: None = None
    gone: None = None


class Comparison(NamedTuple):
    """The findings to report that are new, those that the baseline has, and those that are gone."""

    new: tuple[ReportedFinding, ...]
    known: tuple[ReportedFinding, ...]
    fixed: tuple[EarlierFinding, ...]


def read_baseline(findings: Iterable[Mapping[str, Any]]) -> list[EarlierFinding]:
    """Returns the findings of a report, given as `ReportedFinding.as_dict` returns them. Raises InvalidBaseline."""
    return [_read(finding) for finding in findings]


def _read(finding: Mapping[str, Any]) -> EarlierFinding:
    try:
        texts = [finding[name] for name in ("fingerprint", "ruleId", "title", "content", "shape")]
        path, ordinal = finding["location"]["path"], finding["ordinal"]
    except (KeyError, TypeError) as failure:
        raise InvalidBaseline(f"a finding has no {failure}") from failure
    if not all(isinstance(it, str) for it in (*texts, path)) or type(ordinal) is not int:
        raise InvalidBaseline("a finding has a value of another type")
    fingerprint, rule_id, title, content, shape = texts
    return EarlierFinding(fingerprint, rule_id, title, content, ordinal, shape, dependency(rule_id, path))


def compare(scan: WorkingTreeScan, baseline: Sequence[EarlierFinding]) -> Comparison:
    """Returns the comparison. A finding of the baseline is recognized in a renamed file and in edited code, too.

    One in a file that exists and wasn't analyzed isn't fixed.
    """
    analysis = scan.analysis
    earlier = {it.fingerprint: it for it in baseline}

    def is_gone(finding: EarlierFinding) -> bool:
        return covers(finding.path, analysis.uncertain, asks_for_consent=analysis.asks_for_consent)

    identities = identify(analysis.findings, earlier, is_gone)
    found = set(identities.values())
    new = tuple(it for it in scan.findings if identities[it.finding.fingerprint] not in earlier)
    known = tuple(it for it in scan.findings if identities[it.finding.fingerprint] in earlier)
    fixed = tuple(it for it in earlier.values() if it.fingerprint not in found and is_gone(it))
    return Comparison(new, known, fixed)

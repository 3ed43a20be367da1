"""Adds the evidence of the whole project: confidence, open questions, and a missing consent manager."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from openassent_analysis.catalogue import catalogue
from openassent_analysis.findings import SEVERITIES, Finding, priority_of, urgency
from openassent_analysis.fingerprints import Fingerprints
from openassent_analysis.links import Verdict
from openassent_analysis.rules import Rule

# The rule about the project as a whole. Its finding shows the most urgent tracker, wherever that is.
MISSING: Final = "consent-manager-missing"
# They don't show that the project needs to ask: the script is unknown, and a form or a tool may set nothing.
_NO_REASON_TO_ASK: Final = frozenset({"unknown-script-loaded", "widget-loaded"})

# By verdict: the confidence, and the open question.
_CONFIDENCE: Final = {
    Verdict.OPEN: ("high", ""),
    Verdict.LIKELY: ("medium", "No other file that loads this one was found in the repository."),
    Verdict.THEME: ("medium", "The site's theme reads this setting. Whether the theme asks for consent isn't known."),
    Verdict.UNREAD: ("low", "Not all files that may run this code could be followed."),
    Verdict.CONDITION: ("low", "It runs under a condition that may be the visitor's choice: its value isn't known."),
    Verdict.CALLBACK: ("low", "It runs in a callback that may be called only after consent."),
    Verdict.UNUSED: ("low", "Nothing in the repository was found that runs this code."),
}


_DEFAULTS_ELSEWHERE: Final = (
    "low",
    "Another file sets Google's consent defaults to denied: whether it runs before this code isn't known.",
)


def with_confidence(finding: Finding, verdict: Verdict, *, defaults_elsewhere: bool = False) -> Finding:
    """Returns the finding with the confidence of a verdict, and a sentence on the open question."""
    confidence, unknown = _DEFAULTS_ELSEWHERE if defaults_elsewhere else _CONFIDENCE[verdict]
    return replace(
        finding,
        description=f"{finding.description} {unknown}".rstrip(),
        confidence=confidence,
        priority=priority_of(finding.severity, confidence),
    )


def missing_consent_manager(rule: Rule, findings: Iterable[Finding]) -> list[Finding]:
    """Returns the finding of the rule MISSING if there are trackers that surely run. As severe as the worst of them."""
    trackers = sorted(
        (
            it
            for it in findings
            if it.category == "trackers" and it.rule_id not in _NO_REASON_TO_ASK and it.confidence != "low"
        ),
        key=urgency,
    )
    if not trackers:
        return []
    known = catalogue().vendors
    vendor_ids = tuple(sorted({vendor_id for finding in trackers for vendor_id in finding.vendor_ids}))
    vendors = sorted(known[vendor_id].name for vendor_id in vendor_ids)
    names = {"vendors": ", ".join(vendors[:5]) + (" and others" if len(vendors) > 5 else "")}
    # A tag manager may load the consent tool, too.
    sure = trackers[0].confidence == "high" and not any(known[it].category == "tag-manager" for it in vendor_ids)
    confidence = "high" if sure else "medium"
    severity = max(rule.severity, min((it.severity for it in trackers), key=SEVERITIES.index), key=SEVERITIES.index)
    return [
        Finding(
            rule.id,
            rule.title,
            rule.description.strip().format_map(names),
            rule.category,
            severity,
            priority_of(severity, confidence),
            trackers[0].location,
            rule.remediation.strip(),
            rule.references,
            # One per project, wherever its trackers are.
            *Fingerprints("").take(rule.id, "project"),
            vendor_ids,
            confidence,
        )
    ]

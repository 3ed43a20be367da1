"""The findings of a scan as SARIF 2.1.0, the format that code hosts, editors, and other scanners read.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

from controlplane.findings.fixes import Edit, Fix
from controlplane.findings.items import InboxItem
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import public_base_url
from controlplane.scans.findings import FindingItem, PublishedFinding, list_suppressed
from controlplane.scans.items import ScanItem
from controlplane.scans.rules import known_rule, rule_page

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"
_LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
# GitHub's ranges: above 9.0 is critical, from 7.0 high, from 4.0 medium, below that low.
_SECURITY_SEVERITIES = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}
_UNKNOWN_SEVERITY = "medium"
# The inbox's decisions that a finding isn't to be fixed.
_SUPPRESSING = {"accepted", "dismissed"}


def to_sarif(scan: ScanItem, found: Sequence[PublishedFinding]) -> dict[str, Any]:
    """Returns the log of a completed scan with these findings, which must be readable for the caller, and with those
    that the repository silences.
    """
    found = [*found, *(PublishedFinding(it, None) for it in list_suppressed(scan))]
    rules: dict[str, list[FindingItem]] = {}
    for finding, _ in found:
        rules.setdefault(finding.rule_id, []).append(finding)
    order = {rule_id: index for index, rule_id in enumerate(rules)}
    driver: dict[str, Any] = {
        "name": settings.service_brand.capitalize(),
        "informationUri": f"{public_base_url()}/docs",
        "rules": [_rule(rule_id, findings) for rule_id, findings in rules.items()],
    }
    if scan.rules_version is not None:
        driver["version"] = scan.rules_version
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{settings.service_brand}/{scan.root_directory or ''}".rstrip("/") + "/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "versionControlProvenance": [
            {
                "repositoryUri": scan.repository_url,
                "revisionId": scan.head_commit_sha,
                "branch": scan.branch,
                "mappedTo": {"uriBaseId": _ROOT},
            }
        ],
        "invocations": [
            {"executionSuccessful": True, **_times(scan), "toolExecutionNotifications": [*_notifications(scan)]}
        ],
        "results": [_result(scan, it, order[it.finding.rule_id]) for it in found],
        "properties": {"scanId": scan.scan_id, "lockedCount": scan.locked_count},
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _times(scan: ScanItem) -> dict[str, str]:
    times = {"startTimeUtc": scan.started_at, "endTimeUtc": scan.completed_at}
    return {name: value for name, value in times.items() if value is not None}


def _notifications(scan: ScanItem) -> Iterator[dict[str, Any]]:
    """Yields what the scan didn't analyze, and why: a folder that was skipped must not look clean."""
    if scan.coverage is None:
        return
    if scan.coverage.incomplete:
        yield {"level": "warning", "message": {"text": scan.coverage.incomplete}}
    for reason, number in sorted(scan.coverage.skipped.items()):
        example = scan.coverage.skipped_examples.get(reason)
        text = f"Not analyzed ({reason}): {number:,} {'file' if number == 1 else 'files'}"
        notification: dict[str, Any] = {"level": "note", "message": {"text": text + "."}}
        if example is not None:
            notification["message"] = {"text": f"{text}, such as {example}."}
            notification["locations"] = [{"physicalLocation": {"artifactLocation": _artifact(example)}}]
        yield notification | {"properties": {"reason": reason, "count": number}}


def _artifact(path: str) -> dict[str, str]:
    return {"uri": quote(path), "uriBaseId": _ROOT}


def _rule(rule_id: str, findings: Sequence[FindingItem]) -> dict[str, Any]:
    """Returns the rule with texts that name no vendor, because GitHub shows them with each of the rule's findings."""
    known = known_rule(rule_id)
    links = "".join(f"\n\n- {link}" if number == 0 else f"\n- {link}" for number, link in enumerate(known.references))
    severities = [finding.severity for finding in findings if finding.severity in _LEVELS]
    severity = min(severities, key=list(_LEVELS).index, default=_UNKNOWN_SEVERITY)
    rule: dict[str, Any] = {
        "id": rule_id,
        "name": "".join(word.capitalize() for word in rule_id.split("-")),
        "shortDescription": {"text": known.title},
        "fullDescription": {"text": known.description},
        "help": {"text": known.remediation, "markdown": f"{_plain(known.remediation)}{links}"},
        "defaultConfiguration": {"level": _LEVELS[severity]},
        "properties": {
            "tags": ["privacy", "security", known.category or findings[0].category],
            "security-severity": _SECURITY_SEVERITIES[severity],
        },
    }
    if page := rule_page(rule_id):
        rule["helpUri"] = page
    return rule


def _plain(text: str) -> str:
    """Returns the text as Markdown that shows it unchanged."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>&#|" else character for character in text)


def _result(scan: ScanItem, published: PublishedFinding, rule_index: int) -> dict[str, Any]:
    finding, item = published
    place = finding.location
    region = {
        "startLine": place.start_line,
        "startColumn": place.start_column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
        "snippet": {"text": place.snippet},
    }
    result: dict[str, Any] = {
        "ruleId": finding.rule_id,
        "ruleIndex": rule_index,
        "level": _LEVELS.get(finding.severity, _LEVELS[_UNKNOWN_SEVERITY]),
        "message": {"text": f"{finding.title}. {finding.description}\n\nHow to fix it: {finding.remediation}"},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(place.path), "region": region}}],
        # GitHub's own name isn't used: upload-sarif computes that fingerprint, and warns if a file has another value.
        "partialFingerprints": {f"{settings.service_brand}Finding/v1": finding.fingerprint},
        "properties": {
            "priority": finding.priority,
            "confidence": finding.confidence,
            "firstSeenAt": finding.first_seen_at,
            "status": item.status if item else "suppressed" if finding.suppression else "open",
            "permalink": place.permalink,
        },
    }
    if scan.comparison is not None and scan.comparison.new_count is not None:
        result["baselineState"] = "new" if finding.is_new else "unchanged"
    if finding.fix and finding.fix.edits:
        result["fixes"] = [_fix(finding.fix)]
    if item is not None:
        result |= _decision(item)
    if finding.suppression is not None:
        kind, reason = finding.suppression
        result["suppressions"] = [{"kind": "inSource" if kind == "comment" else "external", "justification": reason}]
    return result


def _fix(fix: Fix) -> dict[str, Any]:
    changes = [
        {"artifactLocation": _artifact(path), "replacements": [_replacement(edit) for edit in edits]}
        for path, edits in groupby(sorted(fix.edits), key=lambda edit: edit.path)
    ]
    return {"description": {"text": fix.summary}, "artifactChanges": changes}


def _replacement(edit: Edit) -> dict[str, Any]:
    """Returns the replacement of the edit's lines. Their last line break goes only if nothing replaces them."""
    start = {"startLine": edit.start_line, "startColumn": 1}
    if not edit.after:
        return {"deletedRegion": {**start, "endLine": edit.end_line + 1, "endColumn": 1}}
    end = {"endLine": edit.end_line, "endColumn": len(edit.before.rpartition("\n")[2]) + 1}
    return {"deletedRegion": {**start, **end}, "insertedContent": {"text": edit.after}}


def _decision(item: InboxItem) -> dict[str, Any]:
    decision: dict[str, Any] = {}
    if item.github_issue is not None:
        decision["workItemUris"] = [item.github_issue.url]
    if item.status in _SUPPRESSING:
        reason = {"justification": item.status_reason} if item.status_reason else {}
        decision["suppressions"] = [{"kind": "external", "status": "accepted", **reason}]
    return decision

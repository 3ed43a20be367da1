"""Findings as SARIF 2.1.0, which code hosts, editors, and other scanners read.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. The fingerprints are those of the service's scans, so
uploads of both are recognized as the same findings.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any
from urllib.parse import quote

from openassent_analysis.findings import COMMENT
from openassent_analysis.fixes import Edit, Fix
from openassent_analysis.kinds import NOT_ASSESSED
from openassent_analysis.rules import Rule, rules, rules_version
from openassent_analysis.working_tree import ReportedFinding
from openassent_cli.invocation import invocation
from openassent_cli.local import LocalReport
from openassent_cli.output import print_json
from openassent_cli.printable import escaped

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
# GitHub's ranges: above 9.0 is critical, from 7.0 high, from 4.0 medium, below that low.
_SECURITY_SEVERITIES = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}
_ROOT = "%SRCROOT%"


def print_report(report: LocalReport) -> None:
    print_json(log(report))


def log(report: LocalReport) -> dict[str, Any]:
    """Returns the log. Paths are relative to the root of the working tree, as code hosts expect them."""
    known, documentation = {rule.id: rule for rule in rules()}, invocation().documentation
    shown = [*report.findings, *report.suppressed]
    worst: dict[str, str] = {}
    for finding in (it.finding for it in shown):
        severities = (worst.get(finding.rule_id, finding.severity), finding.severity)
        worst[finding.rule_id] = min(severities, key=list(_LEVELS).index)
    order = {rule_id: index for index, rule_id in enumerate(worst)}
    driver = {
        "name": "Assent",
        "version": rules_version(),
        **({"informationUri": documentation} if documentation else {}),
        "rules": [_rule(known[rule_id], severity, documentation) for rule_id, severity in worst.items()],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "assent/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": [*_notifications(report)]}],
        "results": [_result(report, reported, order[reported.finding.rule_id]) for reported in shown],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _notifications(report: LocalReport) -> Iterator[dict[str, Any]]:
    """Yields which files weren't analyzed, and why: a folder that was skipped must not look clean.

    Also yields comments that have no effect.
    """
    for reason, number in sorted(report.skipped.items()):
        examples = [report.path_in_tree(path) for path in report.skipped_examples[reason]]
        files = "1 file or folder" if number == 1 else f"{number:,} files or folders"
        yield {
            # A warning for code that the project's people wrote.
            "level": "warning" if reason in NOT_ASSESSED else "note",
            "message": {"text": f"Not analyzed ({reason}): {files}, such as {', '.join(examples)}."},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(path)}} for path in examples],
            "properties": {"reason": reason, "count": number},
        }
    for note in report.notes:
        place = {"artifactLocation": _artifact(report.path_in_tree(note.path)), "region": {"startLine": note.line}}
        yield {"level": "warning", "message": {"text": note.text}, "locations": [{"physicalLocation": place}]}


def _artifact(path: str) -> dict[str, str]:
    return {"uri": quote(path), "uriBaseId": _ROOT}


def _rule(rule: Rule, severity: str, documentation: str | None) -> dict[str, Any]:
    """Returns the rule with texts that name no vendor, because GitHub shows them with each of the rule's findings."""
    texts = rule.texts()
    links = [f"\n- {link}" for link in rule.references]
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.split("-")),
        "shortDescription": {"text": texts["title"]},
        "fullDescription": {"text": texts["description"]},
        "help": {"text": texts["remediation"], "markdown": "\n".join([escaped(texts["remediation"]), *links])},
        **({"helpUri": f"{documentation}/rules/{rule.id}"} if documentation else {}),
        "defaultConfiguration": {"level": _LEVELS[severity]},
        "properties": {
            "tags": ["privacy", "security", rule.category],
            "security-severity": _SECURITY_SEVERITIES[severity],
        },
    }


def _result(report: LocalReport, reported: ReportedFinding, rule_index: int) -> dict[str, Any]:
    finding = reported.finding
    place = finding.location
    region = {
        "startLine": place.start_line,
        "startColumn": place.start_column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
        "snippet": {"text": place.snippet},
    }
    artifact = _artifact(report.path_in_tree(place.path))
    result = {
        "ruleId": finding.rule_id,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.title}. {finding.description}\n\nHow to fix it: {finding.remediation}"},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
        # Not under GitHub's name: upload-sarif computes that one, and warns of each that differs.
        "partialFingerprints": {"assentFinding/v1": finding.fingerprint},
        "properties": {
            "priority": finding.priority,
            "confidence": finding.confidence,
            "vendors": [vendor.name for vendor in reported.vendors],
        },
    }
    if reported.fix and reported.fix.edits:
        result["fixes"] = [_fix(report, reported.fix)]
    if suppression := reported.suppression:
        kind = "inSource" if suppression.kind == COMMENT else "external"
        result["suppressions"] = [{"kind": kind, "justification": suppression.reason}]
    return result


def _fix(report: LocalReport, fix: Fix) -> dict[str, Any]:
    changes = [
        {
            "artifactLocation": _artifact(report.path_in_tree(path)),
            "replacements": [_replacement(edit) for edit in edits],
        }
        for path, edits in groupby(sorted(fix.edits), key=lambda edit: edit.path)
    ]
    return {"description": {"text": fix.summary}, "artifactChanges": changes}


def _replacement(edit: Edit) -> dict[str, Any]:
    """Returns the replacement of the edit's lines. Their last line break goes only if nothing replaces them."""
    start, lines = {"startLine": edit.start_line, "startColumn": 1}, edit.before.split("\n")
    last = edit.start_line + len(lines) - 1
    if not edit.after:
        return {"deletedRegion": {**start, "endLine": last + 1, "endColumn": 1}}
    region = {**start, "endLine": last, "endColumn": len(lines[-1]) + 1}
    return {"deletedRegion": region, "insertedContent": {"text": edit.after}}

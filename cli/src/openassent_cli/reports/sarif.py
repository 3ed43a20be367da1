"""Findings as SARIF 2.1.0, which code hosts, editors, and other scanners read.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. The fingerprints are those of the service's scans, so
uploads of both are recognized as the same findings.
"""

from typing import Any
from urllib.parse import quote

from openassent_analysis.findings import COMMENT, Finding, Note, Suppressed
from openassent_analysis.rules import Rule, rules
from openassent_cli.local import LocalReport
from openassent_cli.output import print_json
from openassent_cli.printable import escaped

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
# GitHub's ranges: above 9.0 is critical, from 7.0 high, from 4.0 medium, below that low.
_SECURITY_SEVERITIES = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}
_ROOT = "%SRCROOT%"
_INFORMATION = "https://api.assent.example/docs"


def print_report(report: LocalReport) -> None:
    print_json(log(report))


def log(report: LocalReport) -> dict[str, Any]:
    """Returns the log. Paths are relative to the root of the working tree, as code hosts expect them."""
    known = {rule.id: rule for rule in rules()}
    suppressed = [it.finding for it in report.suppressed]
    found = dict.fromkeys(finding.rule_id for finding in [*report.plain_findings, *suppressed])
    order = {rule_id: index for index, rule_id in enumerate(found)}
    driver = {
        "name": "Assent",
        "version": report.rules_version,
        "informationUri": _INFORMATION,
        "rules": [_rule(known[rule_id]) for rule_id in found],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "assent/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "invocations": [
            {"executionSuccessful": True, "toolExecutionNotifications": [_note(report, it) for it in report.notes]}
        ],
        "results": [
            *(_result(report, finding, order[finding.rule_id]) for finding in report.plain_findings),
            *(_suppressed(report, it, order[it.finding.rule_id]) for it in report.suppressed),
        ],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _note(report: LocalReport, note: Note) -> dict[str, Any]:
    """Returns the notification of a comment that has no effect."""
    place = {"artifactLocation": _artifact(report.path_in_tree(note.path)), "region": {"startLine": note.line}}
    return {"level": "warning", "message": {"text": note.text}, "locations": [{"physicalLocation": place}]}


def _suppressed(report: LocalReport, suppressed: Suppressed, rule_index: int) -> dict[str, Any]:
    """Returns a result that code hosts show as dismissed."""
    kind = "inSource" if suppressed.suppression.kind == COMMENT else "external"
    suppression = {"kind": kind, "justification": suppressed.suppression.reason}
    return {**_result(report, suppressed.finding, rule_index), "suppressions": [suppression]}


def _artifact(path: str) -> dict[str, str]:
    return {"uri": quote(path), "uriBaseId": _ROOT}


def _rule(rule: Rule) -> dict[str, Any]:
    """Returns the rule with texts that name no vendor, because GitHub shows them with each of the rule's findings."""
    texts = rule.texts()
    links = [f"\n- {link}" for link in rule.references]
    described: dict[str, Any] = {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.split("-")),
        "shortDescription": {"text": texts["title"]},
        "fullDescription": {"text": texts["description"]},
        "help": {"text": texts["remediation"], "markdown": "\n".join([escaped(texts["remediation"]), *links])},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "tags": ["privacy", "security", rule.category],
            "security-severity": _SECURITY_SEVERITIES[rule.severity],
        },
    }
    if rule.references:
        described["helpUri"] = rule.references[0]
    return described


def _result(report: LocalReport, finding: Finding, rule_index: int) -> dict[str, Any]:
    place = finding.location
    region = {
        "startLine": place.start_line,
        "startColumn": place.start_column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
        "snippet": {"text": place.snippet},
    }
    artifact = _artifact(report.path_in_tree(place.path))
    return {
        "ruleId": finding.rule_id,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.title}. {finding.description}\n\nHow to fix it: {finding.remediation}"},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
        # Not under GitHub's name: upload-sarif computes that one, and warns of each that differs.
        "partialFingerprints": {"assentFinding/v1": finding.fingerprint},
        "properties": {"priority": finding.priority, "confidence": finding.confidence},
    }

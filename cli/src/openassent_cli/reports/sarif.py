"""Findings as SARIF 2.1.0, which code hosts, editors, and other scanners read.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. The fingerprints are those of the service's scans, so
uploads of both are recognized as the same findings.
"""

from typing import Any
from urllib.parse import quote

from openassent_analysis.findings import Finding
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
    rules: dict[str, Finding] = {}
    for finding in report.plain_findings:
        rules.setdefault(finding.rule_id, finding)
    order = {rule_id: index for index, rule_id in enumerate(rules)}
    driver = {
        "name": "Assent",
        "version": report.rules_version,
        "rules": [_rule(finding) for finding in rules.values()],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "assent/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [_result(report, finding, order[finding.rule_id]) for finding in report.plain_findings],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(finding: Finding) -> dict[str, Any]:
    links = [f"\n- {link}" for link in finding.references]
    rule: dict[str, Any] = {
        "id": finding.rule_id,
        "shortDescription": {"text": finding.title},
        "fullDescription": {"text": finding.description},
        "help": {"text": finding.remediation, "markdown": "\n".join([escaped(finding.remediation), *links])},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
        "properties": {
            "tags": ["privacy", "security", finding.category],
            "security-severity": _SECURITY_SEVERITIES[finding.severity],
        },
    }
    if finding.references:
        rule["helpUri"] = finding.references[0]
    return rule


def _result(report: LocalReport, finding: Finding, rule_index: int) -> dict[str, Any]:
    place = finding.location
    region = {
        "startLine": place.start_line,
        "startColumn": place.start_column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
        "snippet": {"text": place.snippet},
    }
    artifact = {"uri": quote(report.path_in_tree(place.path)), "uriBaseId": _ROOT}
    return {
        "ruleId": finding.rule_id,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.title}. {finding.description}\n\nHow to fix it: {finding.remediation}"},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
        "partialFingerprints": {
            "assentFinding/v1": finding.fingerprint,
            "primaryLocationLineHash": finding.fingerprint,
        },
        "properties": {"priority": finding.priority, "confidence": finding.confidence},
    }

"""Findings as GitHub's workflow commands, which show them next to the code of a pull request.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

import typer

from openassent_cli.local import LocalReport

_LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "notice"}


def print_report(report: LocalReport) -> None:
    for finding in report.plain_findings:
        place = finding.location
        properties = {
            "file": report.path_in_tree(place.path),
            "line": place.start_line,
            "endLine": place.end_line,
            "title": f"{finding.priority} {finding.title}",
        }
        written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
        message = _data(f"{finding.description}\n\n{finding.remediation}")
        typer.echo(f"::{_LEVELS.get(finding.severity, 'warning')} {written}::{message}")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

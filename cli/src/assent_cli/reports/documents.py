"""Findings as a JSON document, which is also what --baseline reads."""

from assent_cli.local import LocalReport
from assent_cli.output import print_json


def print_report(report: LocalReport) -> None:
    print_json(report.as_json())

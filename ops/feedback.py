"""Feedback reports for the operator: by day, and in full."""

from datetime import date, timedelta
from typing import Any

from controlplane.feedback import store as feedback
from controlplane.feedback.store import ReportItem
from controlplane.platform.core import clock

_SUMMARY_LENGTH = 100


def today() -> str:
    """Returns the current UTC day."""
    return clock.timestamp()[:10]


def read_days(last: str, days: int) -> list[ReportItem]:
    """Returns all reports of the given number of UTC days up to `last`, newest first."""
    end = date.fromisoformat(last)
    return [report for back in range(days) for report in feedback.list_reports(str(end - timedelta(days=back)))]


def summary_document(report: ReportItem) -> dict[str, Any]:
    """Returns a one-line summary of a report."""
    message = " ".join(report.fields["message"].split())
    return {
        "reference": report.reference,
        "createdAt": report.created_at,
        "category": report.fields["category"],
        "surface": report.fields.get("surface"),
        "callerId": report.caller_id,
        "message": message if len(message) <= _SUMMARY_LENGTH else message[: _SUMMARY_LENGTH - 1] + "…",
    }


def document(report: ReportItem) -> dict[str, Any]:
    """Returns a complete report."""
    fields = {name: report.fields.get(name) for name in ("category", "surface", *feedback.FIELD_LIMITS)}
    return {"reference": report.reference, "createdAt": report.created_at, "callerId": report.caller_id, **fields}

"""`assent-ops feedback`: reports from callers about the service, and the switch that pauses new ones."""

from datetime import date, timedelta
from typing import Annotated, Any

import typer

from controlplane.feedback import store as feedback
from controlplane.feedback.store import ReportItem
from controlplane.platform.core import clock
from ops.arguments import new_group
from ops.output import NotFound, Result, fields

_SUMMARY_LENGTH = 100

app = new_group("Feedback reports: read them, or pause new ones.")


def _parse_day(text: str) -> str:
    try:
        return str(date.fromisoformat(text))
    except ValueError:
        raise typer.BadParameter("Write the day like this: 2026-03-04.") from None


Day = Annotated[
    str | None, typer.Option("--day", parser=_parse_day, metavar="DAY", help="The last day, in UTC. Default: today.")
]
Days = Annotated[int, typer.Option("--days", min=1, max=400, help="The number of days, ending with --day.")]


@app.command("list")
def list_reports(day: Day = None, days: Days = 1) -> Result:
    """List the reports of one or more days, newest first."""
    last = date.fromisoformat(day or clock.timestamp()[:10])
    reports = [it for back in range(days) for it in feedback.list_reports(str(last - timedelta(days=back)))]
    paused, since = feedback.get_intake()
    note = f"New reports have been paused since {since}." if paused else None
    return Result([_summary(report) for report in reports], note)


@app.command("show")
def show_report(reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="FDB-…")]) -> Result:
    """Show a complete report."""
    try:
        report = feedback.get_report(reference)
    except feedback.UnknownReport:
        raise NotFound(f"There is no report {reference}. Reports are kept for 400 days.") from None
    texts = {name: report.fields.get(name) for name in ("category", "surface", *feedback.FIELD_LIMITS)}
    return Result(fields(report, "reference", "created_at", "caller_id") | texts)


@app.command("pause")
def pause_intake() -> Result:
    """Stop accepting new reports. They get a 503; retries of an accepted report still get its reference."""
    return _set_intake(paused=True)


@app.command("resume")
def resume_intake() -> Result:
    """Accept new reports again."""
    return _set_intake(paused=False)


def _set_intake(*, paused: bool) -> Result:
    feedback.set_intake(paused=paused)
    return Result({"paused": paused})


def _summary(report: ReportItem) -> dict[str, Any]:
    """Returns a report with the beginning of its message, on one line."""
    message = " ".join(report.fields["message"].split())
    return {
        **fields(report, "reference", "created_at"),
        "category": report.fields["category"],
        "surface": report.fields.get("surface"),
        "callerId": report.caller_id,
        "message": message if len(message) <= _SUMMARY_LENGTH else message[: _SUMMARY_LENGTH - 1] + "…",
    }

"""`assent-ops feedback`: reports from callers about the service, and the switch that pauses new ones."""
# ruff: noqa: PLC0415 (see ops.command.command)

from datetime import date
from typing import Annotated

import typer

from ops.command import command
from ops.errors import NotFound
from ops.output import Result

app = typer.Typer(no_args_is_help=True, help="Feedback reports: read them, or pause new ones.")


def _parse_day(text: str) -> str:
    try:
        return str(date.fromisoformat(text))
    except ValueError:
        raise typer.BadParameter("Write the day like this: 2026-03-04.") from None


Day = Annotated[
    str | None, typer.Option("--day", parser=_parse_day, metavar="DAY", help="The last day, in UTC. Default: today.")
]
Days = Annotated[int, typer.Option("--days", min=1, max=400, help="The number of days, ending with --day.")]


@command(app, "list")
def list_reports(day: Day = None, days: Days = 1) -> Result:
    """List the reports of one or more days, newest first."""
    from ops import feedback

    reports = feedback.read_days(day or feedback.today(), days)
    return Result([feedback.summary_document(report) for report in reports], _intake_note())


@command(app, "show")
def show_report(reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="FDB-…")]) -> Result:
    """Show a complete report."""
    from controlplane.feedback.store import UnknownReport, get_report
    from ops import feedback

    try:
        return Result(feedback.document(get_report(reference)))
    except UnknownReport:
        raise NotFound(f"There is no report {reference}. Reports are kept for 400 days.") from None


@command(app, "pause")
def pause_intake() -> Result:
    """Stop accepting new reports. They get a 503; retries of an accepted report still get its reference."""
    return _set_intake(paused=True)


@command(app, "resume")
def resume_intake() -> Result:
    """Accept new reports again."""
    return _set_intake(paused=False)


def _set_intake(*, paused: bool) -> Result:
    from controlplane.feedback import store as feedback

    feedback.set_intake(paused=paused)
    return Result({"paused": paused})


def _intake_note() -> str | None:
    from controlplane.feedback import store as feedback

    paused, since = feedback.get_intake()
    return f"New reports have been paused since {since}." if paused else None

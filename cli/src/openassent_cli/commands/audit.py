"""`assent audit`: websites in a browser, on this machine and in the service."""

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Group, Limit, Priority
from openassent_cli.finding import audit_run, project_ids
from openassent_cli.help import PlainGroup
from openassent_cli.invocation import invocation, note
from openassent_cli.output import done, print_json, show, show_list, written_to
from openassent_cli.problems import Exit, Problem, UnknownName
from openassent_cli.progress import VisitProgress, WaitProgress

if TYPE_CHECKING:
    from openassent import Assent
    from openassent.models import Audit, AuditRunReport, Ownership
    from openassent_audit import Audit as LocalAudit

Found = TypeVar("Found")


class Schedule(StrEnum):
    DAILY = "daily"
    WEEKLY = "weekly"


class _Audits(PlainGroup):
    """A group of commands, of which `local` needs no name: an address or an option means it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[0] if args else "--help"
        if first not in ctx.help_option_names and (first.startswith("-") or "." in first or ":" in first):
            args = ["local", *args]
        return super().parse_args(ctx, args)


app = Group(cls=_Audits, subcommand_metavar="URL | COMMAND [ARGS]...")
Project = Annotated[
    str | None, typer.Option(help="A project's ID, slug, or name. Without it, all projects are searched.")
]


@app.add("local", "assent audit local https://shop.example.com", "assent audit local shop.example.com --fail-on P1")
def local(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of the website's start page.")],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the report to this file instead.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a picture of the page before any choice, as JPEG.")
    ] = None,
    pages: Annotated[int, typer.Option(min=1, max=20, help="How many pages a visit opens.")] = 5,
    settle: Annotated[float, typer.Option(min=0.5, max=60, help="How many seconds each page may run.")] = 5,
    fail_on: Annotated[
        Priority | None, typer.Option(metavar="PRIORITY", help="Exit with 3 if a finding is at least this urgent.")
    ] = None,
) -> None:
    """Visit a website on this machine: short, `assent audit URL`.

    Visits it in Chromium, and lists what it loads without consent. Needs no account.
    """
    # Imported here, because only this command needs the extra `audit`.
    from openassent_audit import Limits, audit_website  # noqa: PLC0415
    from openassent_cli.reports import website  # noqa: PLC0415

    address = url if "://" in url else f"https://{url}"
    # A loop of its own. `asyncio.run` would also remove the thread's loop.
    with VisitProgress() as progress, asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        run = audit_website(address, limits=Limits(pages=pages, settle_seconds=settle), on_progress=progress.update)
        try:
            made = runner.run(run)
        except ValueError as error:
            raise Problem(str(error), code=Exit.USAGE) from None
    if picture and made.picture:
        picture.write_bytes(made.picture)
    with written_to(output):
        if invocation().json:
            print_json(made.as_json())
        else:
            website.print_report(made.as_json())
    _end(made, fail_on)


@app.add("list")
def list_audits(project: Project = None, limit: Limit = DEFAULT_LIMIT) -> None:
    """List the service's audits of websites."""
    with invocation().client() as client:
        show_list(
            (it for one in project_ids(client, project) for it in client.audits.list(one)),
            {
                "WEBSITE": "url",
                "OUTCOME": lambda it: it.latest_run.outcome if it.latest_run else None,
                "AUDITED": lambda it: it.latest_run.finished_at if it.latest_run else None,
                "SCHEDULE": "schedule",
                "PROOF": lambda it: it.proof.method if it.proof else None,
                "RUN": lambda it: it.active_run_id or (it.latest_run.run_id if it.latest_run else None),
                "ID": "audit_id",
            },
            limit=limit,
            empty="There are no audits. Start one with `assent audit start`.",
        )


@app.add("start", "assent audit start shop.example.com --wait", "assent audit start shop.example.com --schedule weekly")
def start(
    website: Annotated[str, typer.Argument(help="The website's address or ID, or the audit's ID.")],
    *,
    project: Project = None,
    schedule: Annotated[Schedule | None, typer.Option(help="Also audit it daily or weekly.")] = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until the run is done.")] = False,
    fail_on: Annotated[
        Priority | None,
        typer.Option(metavar="PRIORITY", help="Wait, and exit with 3 if a finding is at least this urgent."),
    ] = None,
    timeout: Annotated[int, typer.Option(help="How many seconds to wait at most.")] = 1_800,
    dry_run: DryRun = False,
) -> None:
    """Audit a project's website in the service."""
    with invocation().client() as client:
        audit, is_new = _audit(client, website, project, schedule, dry_run=dry_run)
        if dry_run and is_new:
            done(audit, f"Would audit {audit.url}.")
            return
        run = client.audits.start(audit.project_id, audit.audit_id, dry_run=dry_run)
        if dry_run:
            done(run, f"Would audit {audit.url}.")
            return
        if schedule and not audit.proof and not invocation().json:
            _explain_proof(audit.ownership)
        if not (wait or fail_on):
            follow = f"assent audit show {run.run_id} --project {run.project_id}"
            done(run, f"The run is {run.status}. Follow it with `{follow}`.")
            return
        with WaitProgress("Auditing"):
            report = client.audits.wait(run, timeout=timeout)
    _show(report)
    _end(report, fail_on)


@app.add("show")
def show_run(run: Annotated[str, typer.Argument(metavar="RUN", help="The run's ID.")], project: Project = None) -> None:
    """Show a run of an audit with its vendors and findings."""
    with invocation().client() as client:
        found = audit_run(client, run, project)
    _show(found)


def _audit(
    client: "Assent", wanted: str, project: str | None, schedule: Schedule | None, *, dry_run: bool
) -> tuple["Audit", bool]:
    """Returns the audit with that ID, or the website's, and whether it is new: a website gets one if it has none.

    schedule: the audit's from now on, unless it is None. Raises Problem.
    """
    address = wanted.rpartition("://")[2].rstrip("/").lower()
    projects, names = [*project_ids(client, project)], {wanted, f"https://{address}/"}
    audits = {
        one: it for one in projects for it in client.audits.list(one) if names & {it.audit_id, it.website_id, it.url}
    }
    if audits:
        audit = _in_one_project(audits, wanted)[1]
        if schedule and audit.schedule != schedule:
            audit = client.audits.update(audit.project_id, audit.audit_id, schedule=schedule, dry_run=dry_run)
    else:
        websites = {
            one: it.id
            for one in projects
            for it in client.projects.get(one).websites
            if wanted == it.id or address == it.origin
        }
        owner, website = _in_one_project(websites, wanted)
        audit = client.audits.create(owner, website_id=website, schedule=schedule, dry_run=dry_run)
    return audit, not audits


def _in_one_project(found: dict[str, Found], wanted: str) -> tuple[str, Found]:
    """Returns the only item of a dictionary by project. Raises Problem."""
    if not found:
        raise UnknownName("website", wanted)
    if len(found) > 1:
        raise Problem(f"Several projects have the website {wanted}.", "Give --project.", Exit.USAGE)
    return found.popitem()


def _explain_proof(proof: "Ownership") -> None:
    note(
        f"The schedule begins once a run finds that the website is yours: the TXT record {proof.dns_name} with the "
        f"value {proof.dns_value}, or {proof.file_url} with the content {proof.file_content}, or a page that loads "
        "the project's consent instance."
    )


def _show(run: "AuditRunReport") -> None:
    # Imported here, because it imports rich, which takes long.
    from openassent_cli.reports import website  # noqa: PLC0415

    show(
        run,
        [
            ("Run", run.run_id),
            ("Website", run.url),
            ("Status", run.status),
            ("Outcome", run.outcome),
            ("Reason", run.reason.message if run.reason else None),
            ("Trigger", run.trigger),
            ("Started", run.created_at),
            ("Finished", run.finished_at),
        ],
    )
    if run.outcome and not invocation().json:
        website.print_report(run.model_dump(by_alias=True))


def _end(audit: "LocalAudit | AuditRunReport", fail_on: Priority | None) -> None:
    """Ends the command with an error if the website couldn't be audited, or for a finding at the threshold."""
    if audit.reason and audit.outcome not in {"passed", "failed"}:
        raise Problem(audit.reason.message)
    if fail_on and any(it.priority <= fail_on for it in audit.findings):
        raise typer.Exit(Exit.FINDINGS)

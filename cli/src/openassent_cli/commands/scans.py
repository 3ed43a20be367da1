"""`assent scan`: code-audit scans, on the service and on this machine."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openassent_cli.commands.shared import (
    DEFAULT_LIMIT,
    DryRun,
    Excluded,
    Group,
    Included,
    Limit,
    OnlyRules,
    Priority,
    Yes,
    confirm,
)
from openassent_cli.finding import project_id, repository_id
from openassent_cli.invocation import invocation, note
from openassent_cli.output import done, print_json, show, show_list, written_to
from openassent_cli.problems import Exit, Problem
from openassent_cli.progress import FileProgress, ScanProgress
from openassent_cli.reports import Format

if TYPE_CHECKING:
    from openassent.models import Issue, ScanDetail

app = Group()
Scan = Annotated[str, typer.Argument(metavar="SCAN", help="The scan's ID.")]


@app.add("list")
def list_scans(
    repo: Annotated[str | None, typer.Option(help="A repository's ID, or owner/name.")] = None,
    status: Annotated[str | None, typer.Option(help="queued, running, completed, failed, or canceled.")] = None,
    limit: Limit = DEFAULT_LIMIT,
) -> None:
    """List scans, newest first."""
    with invocation().client() as client:
        found = client.scans.list(repository_id=repository_id(client, repo) if repo else None, status=status)
        show_list(
            found,
            {
                "STATUS": "status",
                "REPOSITORY": "repository_name",
                "BRANCH": "branch",
                "COMMIT": lambda it: (it.head_commit_sha or "")[:9],
                "FINDINGS": "finding_count",
                "TRIGGER": "trigger",
                "STARTED": "created_at",
                "ID": "id",
            },
            limit=limit,
            empty="There are no scans. Start one with `assent scan start`.",
        )


@app.add("start", "assent scan start acme/shop --wait")
def start(
    repo: Annotated[str, typer.Argument(metavar="REPOSITORY", help="The repository's ID, or owner/name.")],
    project: Annotated[str | None, typer.Option(help="Which of its projects: ID, slug, or name.")] = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until the scan is done.")] = False,
    timeout: Annotated[int, typer.Option(help="How many seconds to wait at most.")] = 1_800,
    dry_run: DryRun = False,
) -> None:
    """Scan the newest commit of a repository's production branch."""
    with invocation().client() as client:
        started = client.scans.start(
            repository_id=repository_id(client, repo),
            project_id=project_id(client, project) if project else None,
            dry_run=dry_run,
        )
        if dry_run or not wait:
            done(started, f"Would scan {repo}." if dry_run else _state(started))
            return
        with ScanProgress() as progress:
            scan = client.scans.wait(started, on_progress=progress.update, timeout=timeout)
    _show(scan)
    if scan.status == "failed":
        raise Problem(scan.failure.message if scan.failure else "The scan failed.")


@app.add("show")
def show_scan(scan: Scan, issues: Annotated[bool, typer.Option(help="Also list its findings.")] = True) -> None:
    """Show a scan and its findings."""
    with invocation().client() as client:
        found = client.scans.get(scan)
        wanted = issues and found.status == "completed" and found.access != "locked" and not invocation().json
        readable = client.scans.issues(scan) if wanted else None
    _show(found)
    if readable and readable.issues:
        note("")
        _list_issues(readable.issues)
    if found.status == "completed" and found.unlock_credits:
        note(f"Some findings are locked. Unlock them with `assent scan unlock {scan}`.")


@app.add("diff")
def diff(
    scan: Scan,
    base: Annotated[str | None, typer.Option(help="The scan to compare with. The one before by default.")] = None,
) -> None:
    """Compare the findings of a scan with those of an earlier one."""
    with invocation().client() as client:
        compared = client.scans.diff(scan, base=base)
    if invocation().json:
        print_json(compared)
        return
    changes = {it.fingerprint: "new" for it in compared.new}
    _list_issues([*compared.new, *compared.fixed], lambda it: changes.get(it.fingerprint, "fixed"))
    note(f"{compared.new_count} new, {compared.fixed_count} fixed, {compared.unchanged_count} unchanged.")


@app.add("cancel")
def cancel(scan: Scan, dry_run: DryRun = False) -> None:
    """Cancel a scan that is queued or running."""
    with invocation().client() as client:
        done(client.scans.cancel(scan, dry_run=dry_run), f"{'Would cancel' if dry_run else 'Canceled'} {scan}.")


@app.add("unlock")
def unlock(scan: Scan, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Pay for all findings of a scan, in credits."""
    with invocation().client() as client:
        found = client.scans.get(scan)
        if found.status != "completed":
            message = f"The scan's status is {found.status}. Only a completed scan can be unlocked."
            raise Problem(message, code=Exit.CONFLICT)
        if not found.unlock_credits:
            raise Problem("All findings of this scan are readable already.", code=Exit.CONFLICT)
        if not dry_run:
            confirm(f"Unlock all findings for {found.unlock_credits} credits?", yes=yes)
        unlocked = client.scans.unlock(scan, dry_run=dry_run)
        done(unlocked, f"{'Would unlock' if dry_run else 'Unlocked'} {scan}.")


@app.add(
    "local",
    "assent scan local",
    "assent scan local web --changed-since main --fail-on P1",
    "assent scan local --format sarif --output findings.sarif",
)
def local(
    path: Annotated[Path, typer.Argument(help="The folder to scan.")] = Path(),
    *,
    form: Annotated[
        Format, typer.Option("--format", "-f", metavar="FORMAT", help="text, json, sarif, or github.")
    ] = Format.TEXT,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the findings to this file instead.")
    ] = None,
    exclude: Excluded = None,
    include: Included = None,
    rule: OnlyRules = None,
    baseline: Annotated[
        Path | None, typer.Option(help="A report of an earlier scan, as JSON. Its findings are left out.")
    ] = None,
    changed_since: Annotated[
        str | None, typer.Option(metavar="REF", help="Only findings in files that differ from this commit or branch.")
    ] = None,
    fail_on: Annotated[
        Priority | None, typer.Option(metavar="PRIORITY", help="Exit with 3 if a finding is at least this urgent.")
    ] = None,
) -> None:
    """Scan a folder on this machine: offline, without an account."""
    # Imported here, because the analysis takes a third of a second to import.
    from openassent_cli.local import read_report, scan_folder, selection_of  # noqa: PLC0415
    from openassent_cli.reports import annotations, sarif, text  # noqa: PLC0415

    known = read_report(baseline) if baseline else None
    selection = selection_of(exclude, include, rule)
    with FileProgress() as progress:
        report = scan_folder(
            path, selection=selection, baseline=known, changed_since=changed_since, on_progress=progress.update
        )
    with written_to(output):
        if invocation().json or form is Format.JSON:
            print_json(report.as_json())  # also what --baseline reads
        else:
            printer = {Format.TEXT: text, Format.SARIF: sarif, Format.GITHUB: annotations}[form]
            printer.print_report(report)
    if fail_on and report.at_or_above(fail_on):
        raise typer.Exit(Exit.FINDINGS)


def _state(started: object) -> str:
    scan = getattr(started, "scan", None)
    if scan is not None:
        return f"Scan {scan.id} is {scan.status}. Follow it with `assent scan show {scan.id}`."
    return "The scan is being prepared. Follow it with `assent scan list`."


def _show(scan: "ScanDetail") -> None:
    coverage = scan.coverage
    show(
        scan,
        [
            ("Scan", scan.id),
            ("Status", scan.status),
            ("Repository", scan.repository_name),
            ("Branch", scan.branch),
            ("Commit", scan.head_commit_sha),
            ("Pull request", scan.pull_request_number),
            ("Trigger", scan.trigger),
            ("Findings", scan.finding_count),
            ("Analyzed", f"{coverage.analyzed_files} of {coverage.files} files" if coverage else None),
            ("Left out", coverage.incomplete if coverage else None),
            ("Failure", scan.failure.message if scan.failure else None),
            ("Unlock for", f"{scan.unlock_credits} credits" if scan.unlock_credits else None),
            ("Completed", scan.completed_at),
        ],
    )


def _list_issues(issues: "Iterable[Issue]", change: "Callable[[Issue], str] | None" = None) -> None:
    """Lists findings. change: what happened to one since another scan."""
    changed: dict[str, Callable[[Issue], object]] = {"CHANGE": change} if change else {}
    show_list(
        issues,
        {
            **changed,
            "": "priority",
            "FINDING": "title",
            "WHERE": lambda it: f"{it.location.path}:{it.location.start_line}",
            "CONFIDENCE": "confidence",
        },
        empty="No readable findings.",
    )

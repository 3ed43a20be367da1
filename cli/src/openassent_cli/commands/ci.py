"""`assent ci`: one command for a pipeline, which fails if the commit has new findings.

With the tokens of a person, it uses the service's scan of the commit. API keys can't read scans, so with one, or
without any credential, it scans the working tree here and compares it with the commit where the branch left its base.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openassent_cli import git
from openassent_cli.commands.shared import Group, Priority
from openassent_cli.finding import repository_id
from openassent_cli.invocation import invocation, note
from openassent_cli.output import print_json
from openassent_cli.printable import escaped, printable_line
from openassent_cli.problems import Exit, NotSignedIn, Problem
from openassent_cli.progress import FileProgress, ScanProgress

if TYPE_CHECKING:
    from openassent import Assent
    from openassent.models import Issue
    from openassent_analysis.findings import Finding

app = Group()
# A code host's event may arrive later than the pipeline that it started.
_SECONDS_UNTIL_SCAN = 120
_SECONDS_BETWEEN_LOOKS = 10
# The branch that a merge request is to be merged into: GitHub, GitLab, Jenkins.
_BASES = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CHANGE_TARGET")


@dataclass(frozen=True)
class Outcome:
    """A pipeline's findings. scan_id: None for a local scan."""

    new: Sequence[tuple[str, str, str]]  # priority, title, place
    unchanged: int
    log: Mapping[str, Any]
    scan_id: str | None = None

    def failing(self, threshold: Priority) -> list[tuple[str, str, str]]:
        return [it for it in self.new if it[0] <= threshold]


@app.add("ci", "assent ci", "assent ci --local --base main --sarif assent.sarif")
def ci(
    *,
    repo: Annotated[
        str | None, typer.Option(help="The repository, by ID or owner/name. The remote's by default.")
    ] = None,
    fail_on: Annotated[
        Priority, typer.Option(metavar="PRIORITY", help="Exit with 3 if a new finding is at least this urgent.")
    ] = Priority.P1,
    sarif_file: Annotated[Path | None, typer.Option("--sarif", help="Write SARIF to this file.")] = None,
    summary_file: Annotated[
        Path | None,
        typer.Option("--summary", envvar="GITHUB_STEP_SUMMARY", help="Append a summary in Markdown to this file."),
    ] = None,
    here: Annotated[
        bool, typer.Option("--local", help="Scan the working tree here, even with a credential for the service.")
    ] = False,
    base: Annotated[
        str | None, typer.Option(help="Local: the branch to compare with. The target of the merge request by default.")
    ] = None,
    timeout: Annotated[int, typer.Option(help="How many seconds to wait for the scan at most.")] = 1_800,
) -> None:
    """Check this commit in a pipeline: fail if it has new findings."""
    outcome = _local(base) if here or not _may_scan() else _remote(repo, timeout)
    if sarif_file:
        sarif_file.write_text(json.dumps(outcome.log, indent=2), encoding="utf-8")
    failing = outcome.failing(fail_on)
    if summary_file:
        with summary_file.open("a", encoding="utf-8") as file:
            file.write(summary(outcome, failing, fail_on))
    if invocation().json:
        new = [{"priority": priority, "title": title, "place": place} for priority, title, place in outcome.new]
        print_json({"scanId": outcome.scan_id, "new": new, "unchanged": outcome.unchanged, "failing": len(failing)})
    else:
        for priority, title, place in outcome.new:
            typer.echo("  ".join(map(printable_line, (priority, title, place))))
        note(f"{len(outcome.new)} new, {len(failing)} of them {fail_on} or more urgent; {outcome.unchanged} unchanged.")
    if failing:
        raise typer.Exit(Exit.FINDINGS)


def summary(outcome: Outcome, failing: Sequence[object], threshold: Priority) -> str:
    """Returns the summary as Markdown."""
    count = f"{len(failing)} new {'finding is' if len(failing) == 1 else 'findings are'}"
    verdict = f"{count} {threshold} or more urgent" if failing else "No new finding fails the check"
    lines = [f"## Assent: {verdict}", "", f"{len(outcome.new)} new, {outcome.unchanged} unchanged.", ""]
    if outcome.new:
        lines += ["| Priority | Finding | Where |", "| --- | --- | --- |"]
        lines += [f"| {' | '.join(escaped(printable_line(part)) for part in row)} |" for row in outcome.new]
    return "\n".join([*lines, ""])


def _may_scan() -> bool:
    """Returns whether the credential can use the service's scans. Says so if not."""
    given = invocation()
    if given.api_key:
        note("API keys can't read scans, so the working tree is scanned here.")
        return False
    try:
        given.settings()
    except NotSignedIn:
        note("You aren't signed in, so the working tree is scanned here.")
        return False
    return True


def _local(base: str | None) -> Outcome:
    # Imported here, because the analysis takes a third of a second to import.
    from openassent_analysis.working_tree import read_baseline  # noqa: PLC0415
    from openassent_cli.local import scan_folder  # noqa: PLC0415
    from openassent_cli.reports import annotations, sarif  # noqa: PLC0415

    folder = git.root(Path()) or Path()
    with FileProgress() as progress:
        known = None
        reference = base or _base_of_merge_request(folder)
        if reference and git.has(folder, "HEAD"):  # in a repository without commits, everything is new
            with git.checked_out(folder, reference) as tree:
                earlier = scan_folder(tree, on_progress=progress.update).findings
                known = read_baseline(it.as_dict() for it in earlier)
        report = scan_folder(folder, baseline=known, on_progress=progress.update)
    if os.environ.get("GITHUB_ACTIONS") == "true" and not invocation().json:
        annotations.print_report(report)
    return Outcome([_row(it) for it in report.plain_findings], report.baseline_count or 0, sarif.log(report))


def _row(finding: "Finding | Issue") -> tuple[str, str, str]:
    """Returns a finding of a local scan, or of the service's, as Outcome.new has it."""
    return str(finding.priority), finding.title, f"{finding.location.path}:{finding.location.start_line}"


def _base_of_merge_request(folder: Path) -> str | None:
    """Returns the target branch as the remote's, because a pipeline's clone has no other."""
    name = _target()
    if name is None:
        return None
    return f"origin/{name}" if git.has(folder, f"origin/{name}") else name


def _target() -> str | None:
    """Returns the branch into which the pipeline's merge request is to be merged."""
    return next((value for variable in _BASES if (value := os.environ.get(variable))), None)


def _remote(repo: str | None, timeout: int) -> Outcome:
    wanted = repo or git.remote_name(Path())
    if wanted is None:
        raise Problem("The remote `origin` doesn't name a repository.", "Give --repo owner/name.", Exit.USAGE)
    commit = git.commit(Path(), of_merge=_target() is not None)
    with invocation().client() as client, ScanProgress() as progress:
        found = repository_id(client, wanted)
        scan = client.scans.wait(_scan_of(client, found, commit), on_progress=progress.update, timeout=timeout)
        if scan.status != "completed":
            raise Problem(scan.failure.message if scan.failure else "The scan failed.")
        compared, log = client.scans.diff(scan.id), client.scans.sarif(scan.id)
    return Outcome([_row(it) for it in compared.new], compared.unchanged_count, log, scan.id)


def _scan_of(client: "Assent", repository: str, commit: str) -> Any:
    """Returns the scan of the commit, or the start of one. Raises Problem if the service has no reason to scan it."""
    deadline = time.monotonic() + _SECONDS_UNTIL_SCAN
    while True:
        for scan in client.scans.list(repository_id=repository, limit=50).page().items:
            if scan.head_commit_sha == commit and scan.status not in {"failed", "canceled"}:
                return scan
        connected = next(it for it in client.repositories.list() if it.id == repository)
        branches = {link.production_branch or connected.default_branch for link in connected.projects}
        if any(git.is_tip(Path(), commit, branch) for branch in branches if branch):
            return client.scans.start(repository_id=repository)
        if time.monotonic() > deadline:
            message = f"The service has no scan of the commit {commit[:12]}."
            advice = "Turn on scans of pull requests (`assent repo link … --pull-requests`), or use --local."
            raise Problem(message, advice, Exit.NOT_FOUND)
        time.sleep(_SECONDS_BETWEEN_LOOKS)

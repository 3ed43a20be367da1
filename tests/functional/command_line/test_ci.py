"""`assent ci` with a profile: it uses the service's scan of the commit."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.tests.support.shell import run_git
from controlplane.code_host import repositories
from controlplane.scans import failures
from controlplane.scans.items import Failure, ScanItem
from openassent_cli.problems import Exit
from tests.functional.command_line.conftest import Office
from tests.support.audits import end_scan, lease_of, make_issue, make_scan
from tests.support.sarif import check_sarif


@pytest.fixture(autouse=True)
def clone(tmp_path, monkeypatch):
    """A clone of acme/shop, on a commit that isn't the tip of a branch of the remote."""
    for variable in ("GITHUB_HEAD_REF", "CI_MERGE_REQUEST_IID", "CHANGE_ID"):
        monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "shop"
    folder.mkdir()
    run_git(folder, "init", "-q")
    run_git(folder, "remote", "add", "origin", "https://github.com/acme/shop.git")
    run_git(folder, "commit", "-qm", "first", "--allow-empty")
    monkeypatch.chdir(folder)
    return folder


def scan(office: Office, clone: Path, *, status: str = "completed", priority: str = "P1") -> ScanItem:
    """Creates a scan of the commit, with a finding that no earlier scan has."""
    repository = next(
        it for it in repositories.list_repositories(office.company.organization_id, 10, None).items if it.links
    )
    commit = run_git(clone, "rev-parse", "HEAD")
    return make_scan(repository, status=status, issues=[make_issue(9, priority=priority)], access="full", commit=commit)


def test_fails_with_new_findings_of_the_scan(shell, office, clone):
    found = scan(office, clone)
    ended = shell.run("ci --sarif out.sarif --summary summary.md")
    assert ended.code == Exit.FINDINGS
    assert ended.stdout == "P1  Google Analytics loads before consent  src/app.tsx:9\n"
    assert ended.stderr == "1 new, 1 of them P1 or more urgent; 0 unchanged.\n"
    check_sarif(json.loads((clone / "out.sarif").read_text()))
    assert "src/app.tsx:9" in (clone / "summary.md").read_text()
    assert shell.run("ci --json").json["scanId"] == found.scan_id


def test_passes_if_the_new_findings_are_less_urgent(shell, office, clone, now):
    found = scan(office, clone, priority="P2")
    assert shell.run("ci").code == Exit.DONE
    assert shell.run("ci --fail-on P2").code == Exit.FINDINGS
    now.advance(1)
    scan(office, clone, status="failed")  # isn't used
    assert shell.run("ci --json").json["scanId"] == found.scan_id


@pytest.mark.parametrize("fails", [False, True])
def test_waits_for_a_scan_that_is_running(fails, shell, office, clone, monkeypatch):
    running = scan(office, clone, status="running")
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if fails:
            failure = Failure("REPOSITORY_TOO_LARGE", "The repository is too large.")
            failures.fail_attempted(running.scan_id, failure, lease_of(running))
        else:
            end_scan(running)

    # Not the interpreter's: subprocess sleeps, too, until git has ended.
    monkeypatch.setattr("openassent._sync.scans.sleep", sleep)
    ended = shell.run("ci")
    assert (ended.code, len(waited)) == (Exit.FAILED if fails else Exit.DONE, 1)
    assert ended.stderr.endswith("Error: The repository is too large.\n") is fails


def test_finds_the_scan_of_a_commit_that_the_pipeline_merged(shell, office, clone):
    run_git(clone, "branch", "target")
    run_git(clone, "commit", "-qm", "of the branch", "--allow-empty")
    found = scan(office, clone)
    run_git(clone, "switch", "-q", "target")
    run_git(clone, "commit", "-qm", "of the target", "--allow-empty")
    run_git(clone, "merge", "-q", "--no-ff", "-m", "merged", "main")
    ended = shell.run("ci --json", GITHUB_BASE_REF="target")
    assert (ended.code, ended.json["scanId"]) == (Exit.FINDINGS, found.scan_id)


def test_starts_a_scan_of_the_tip_of_the_production_branch(shell, clone, gateway):
    run_git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")
    ended = shell.run("ci --timeout 1")
    assert (ended.code, "in time" in ended.stderr) == (Exit.FAILED, True)
    assert [request.method for request in gateway.requests].count("POST") == 1


def test_gives_up_on_a_commit_that_isnt_scanned(shell, clone, monkeypatch):
    seconds: Iterator[int] = iter(range(0, 10_000, 60))
    monkeypatch.setattr("openassent_cli.commands.ci.time.monotonic", lambda: float(next(seconds)))
    ended = shell.run("ci")
    assert ended.code == Exit.NOT_FOUND
    assert f"no scan of the commit {run_git(clone, 'rev-parse', 'HEAD')[:12]}." in ended.stderr
    assert "or use --local." in ended.stderr


def test_needs_to_know_the_repository(shell, clone):
    run_git(clone, "remote", "remove", "origin")
    assert "Give --repo owner/name." in shell.run("ci").stderr
    assert shell.run("ci --repo acme/nope").code == Exit.NOT_FOUND

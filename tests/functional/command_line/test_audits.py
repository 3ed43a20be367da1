"""`assent audit start` with a worker that reports while the command waits."""

from controlplane.audits import runs
from controlplane.platform.core.ids import ProjectId, RunId
from openassent_cli.problems import Exit
from tests.support.audit_reports import finding, receive, report


def test_it_ends_with_the_findings_which_are_in_the_inbox(shell, office, api, monkeypatch):
    def work(_: float) -> None:
        started = api.replies[-1].data
        ids = ProjectId.stored(started["projectId"]), started["auditId"], RunId.stored(started["runId"])
        run = runs.find_run(*ids)
        assert run
        receive(report(run, finding()))

    monkeypatch.setattr("time.sleep", work)
    ended = shell.run("audit start shop.example.com --fail-on P1")
    assert ended.code == Exit.FINDINGS, ended.stderr
    assert " P1  Segment loads before consent" in ended.stdout
    assert (
        "Failed: 1 finding (1 P1) on 1 page of shop.example.com. Since the run before: 1 new finding, 1" in ended.stderr
    )
    (item,) = {word.rstrip("`") for word in ended.stdout.split() if word.startswith("inb_")}
    assert "Segment loads before consent" in shell.run(f"inbox show {item}").stdout

"""`assent audit` without a browser or a service: its reports, and its exit codes. tests/audits audits websites."""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from cli.tests.support.documented_service import DocumentedService, examples, operations
from cli.tests.support.script import ADDRESS, SECRET, failure, success
from cli.tests.support.shell import run
from openassent_audit.judgment import judge
from openassent_audit.recording import Sent
from openassent_audit.report import Audit, Reason
from openassent_audit.vendors import Parties
from openassent_audit.visits import Visit
from openassent_cli.problems import Exit
from tests.support.each import each

PAGE = "https://shop.example/"
HOTJAR = Sent("https://static.hotjar.com/c/hotjar-1.js", "script", 1_200, PAGE, after_choice=False, chain=(PAGE,))


def audit_of(*requests: Sent, reason: Reason | None = None) -> Audit:
    visits = [Visit("untouched", pages=[PAGE], requests=[*requests], picture=b"picture")]
    parties, now = Parties("shop.example", {}), datetime(2026, 3, 1, tzinfo=UTC)
    findings = judge("shop.example", visits, parties)
    outcome = "failed" if findings else "blocked" if reason else "passed"
    return Audit(PAGE, "shop.example", now, now, outcome, parties, reason, findings, visits, b"picture")


@pytest.fixture
def audited(monkeypatch):
    """Replaces the visits, which need Chromium, with the given audit."""

    def give(audit: Audit) -> None:
        async def audit_website(*_: object, **__: object) -> Audit:
            return audit

        monkeypatch.setattr("openassent_audit.audit_website", audit_website)

    return give


class TestOnThisMachine:
    def test_it_prints_the_finding_with_its_evidence(self, audited):
        audited(audit_of(HOTJAR))
        result = run("audit shop.example")
        assert result.code == Exit.DONE
        assert "P1  Hotjar loads before consent" in result.stdout
        assert f"on {PAGE}, 1.2 s into the untouched visit, loaded by {PAGE}" in result.stdout
        assert "Failed: 1 finding (1 P1) on 1 page of shop.example." in result.stderr

    def test_a_finding_at_the_threshold_has_an_exit_code(self, audited):
        audited(audit_of(HOTJAR))
        assert run(f"audit {PAGE} --fail-on P1").code == Exit.FINDINGS
        assert run(f"audit {PAGE} --fail-on P0").code == Exit.DONE

    def test_it_writes_the_report_and_the_picture(self, audited, tmp_path):
        audited(audit_of(HOTJAR))
        report, picture = tmp_path / "report.json", tmp_path / "page.jpg"
        run(f"audit {PAGE} --json -o {report} --picture {picture}")
        [finding] = json.loads(report.read_text())["findings"]
        assert finding["id"] == "loaded-before-consent:hotjar"
        assert picture.read_bytes() == b"picture"

    def test_a_blocked_audit_fails_and_says_why(self, audited):
        audited(audit_of(reason=Reason("login", "The website asks visitors to sign in.")))
        result = run(f"audit {PAGE}")
        assert result.code == Exit.FAILED
        assert "The website asks visitors to sign in." in result.stderr

    def test_the_name_of_the_command_can_be_given_and_options_can_come_first(self, audited):
        audited(audit_of())
        lines = ("audit local shop.example", "audit --fail-on P1 shop.example", "audit --url shop.example")
        assert [run(line).code for line in lines] == [Exit.DONE] * 3
        mistyped = run("audit strat shop.example")
        assert (mistyped.code, "Did you mean 'start'?" in mistyped.stderr) == (Exit.USAGE, True)

    @pytest.mark.parametrize("url", ["file:///etc/passwd", "https://a:b@shop.example"])
    def test_another_address_is_wrong_usage(self, url):
        assert run(f"audit {url}").code == Exit.USAGE


RUN_ID = "run_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"


class Service(DocumentedService):
    """The documented service, with an audit of example.com whose run ends at the second look.

    ended: the fields of the run from then on. audits: whether there is the audit.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ended: dict[str, Any] = {}
        self.audits = True
        self.bodies: dict[str, Any] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        response = super().__call__(request)
        operation = self.called[-1]
        self.bodies[operation] = json.loads(request.content or b"null")
        if operation == "getAuditRun":
            if RUN_ID not in request.url.path:
                return failure(404, "NOT_FOUND")
            content = copy.deepcopy(examples(operations()[operation])[0][1]["data"])
            pending = self.called.count(operation) == 1 and self.called.count("startAuditRun")
            return success({**content, "status": "pending", "outcome": None} if pending else {**content, **self.ended})
        return success([]) if operation == "listAudits" and not self.audits else response


@pytest.fixture
def service(monkeypatch):
    made = Service()
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: made(request))
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setenv("ASSENT_API_KEY", SECRET)
    monkeypatch.setenv("ASSENT_BASE_URL", ADDRESS)
    return made


BLOCKED = {"outcome": "blocked", "findings": [], "reason": {"code": "login", "message": "It asks visitors to sign in."}}
LOST = {"status": "failed", "outcome": None, "findings": [], "reason": {"code": "lost", "message": "It got lost."}}


class TestInTheService:
    @each("website", ["example.com", "https://Example.com/", "web_01kb2m3n4p5q6r7s8t", "aud_01kb2m3n4p5q6r7s8t"])
    def test_a_run_is_started_and_awaited(self, service, website):
        service.called.clear()
        result = run(f"audit start {website} --wait")
        assert result.code == Exit.DONE
        assert service.called == ["listProjects", "listAudits", "startAuditRun", "getAuditRun", "getAuditRun"]
        for part in (
            f"Run:\t{RUN_ID}",
            "segment (unknown): only as consent mode allows",
            "P0  Segment loads before consent\n  `assent inbox show inb_",
        ):
            assert part in result.stdout
        summary = "1 finding (1 P0) on 1 page of example.com. Since the run before: 1 new finding, 1 resolved finding, "
        assert summary in result.stderr

    @each(
        ("ended", "code", "said"),
        [
            ({}, Exit.FINDINGS, "Failed: 1 finding"),
            ({"outcome": "passed", "findings": []}, Exit.DONE, "Passed: No findings"),
            (BLOCKED, Exit.FAILED, "Error: It asks visitors to sign in."),
            (LOST, Exit.FAILED, "Error: It got lost."),
        ],
    )
    def test_the_exit_code_is_that_of_a_local_audit(self, service, ended, code, said):
        service.called.clear()
        service.ended = ended
        result = run("audit start example.com --fail-on P1")
        assert (result.code, said in result.stderr) == (code, True), result.stderr

    def test_a_website_without_an_audit_gets_one(self, service):
        service.audits = False
        result = run("audit start example.com --schedule weekly --project prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")
        assert service.called == ["listAudits", "getProject", "createAudit", "startAuditRun"]
        website = service.bodies["createAudit"]["websiteId"]
        assert service.bodies["createAudit"] == {"websiteId": website, "schedule": "weekly"}
        assert f"Follow it with `assent audit show {RUN_ID} --project prj_" in result.stderr
        missing = run("audit start other.example")
        assert (missing.code, "There is no website other.example." in missing.stderr) == (Exit.NOT_FOUND, True)

    def test_a_schedule_is_changed(self, service):
        run("audit start example.com --schedule daily")
        assert service.called == ["listProjects", "listAudits", "updateAudit", "startAuditRun"]
        assert service.bodies["updateAudit"] == {"schedule": "daily"}

    def test_a_run_is_shown_and_unknown_ones_are_not(self, service):
        assert run(f"audit show {RUN_ID} --json").json["vendors"] == [{"vendorId": "segment"}]
        unknown = run("audit show run_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8u")
        assert (unknown.code, "There is no run run_3f8k" in unknown.stderr) == (Exit.NOT_FOUND, True)

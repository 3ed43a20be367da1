"""`assent audit` without a browser: its report for people, and its exit codes. tests/audits audits websites."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from cli.tests.support.shell import run
from openassent_audit.judgment import judge
from openassent_audit.recording import Sent
from openassent_audit.report import Audit, Reason
from openassent_audit.vendors import Parties
from openassent_audit.visits import Visit
from openassent_cli.problems import Exit

PAGE = "https://shop.example/"
HOTJAR = Sent("https://static.hotjar.com/c/hotjar-1.js", "script", 1_200, PAGE, after_choice=False, chain=(PAGE,))


def audit_of(*requests: Sent, reason: Reason | None = None) -> Audit:
    visits = [Visit("untouched", pages=[PAGE], requests=[*requests], picture=b"picture")]
    parties, now = Parties("shop.example", {}), datetime(2026, 3, 1, tzinfo=UTC)
    findings = judge("shop.example", visits, parties)
    outcome = "failed" if findings else "blocked" if reason else "passed"
    return Audit(PAGE, "shop.example", now, now, outcome, parties, reason, findings, visits, b"picture")


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> Callable[[Audit], None]:
    """Replaces the visits, which need Chromium, with the given audit."""

    def give(audit: Audit) -> None:
        async def audit_website(*_: object, **__: object) -> Audit:
            return audit

        monkeypatch.setattr("openassent_audit.audit_website", audit_website)

    return give


class TestAudit:
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

    @pytest.mark.parametrize("url", ["file:///etc/passwd", "https://a:b@shop.example"])
    def test_another_address_is_wrong_usage(self, url: str):
        assert run(f"audit {url}").code == Exit.USAGE

"""GET /v1/code-audit/scans/{scanId}/issues: the findings that the scan's access level includes."""

from dataclasses import replace
from typing import Any

import pytest

from controlplane.core import ids
from controlplane.store import inbox, keys, publications
from controlplane.store.inbox_items import Fix
from controlplane.store.scans import findings
from controlplane.store.scans.findings import FindingVendor
from controlplane.store.scans.items import Access, ScanItem
from controlplane.store.status_history import Status
from controlplane.store.table import Update, table
from tests.support.api import Api, Reply
from tests.support.audits import end_scan, make_issue, make_scan
from tests.support.calls import Call, Proceed, intercepted
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import Company, World

ISSUES = [make_issue(number) for number in range(1, 6)]
NONE = {"issues": [], "lockedCount": 0, "unlockCredits": None, "expiredCount": 0, "findingsExpireAt": None}


def read(api: Api, company: Company, scan: ScanItem) -> Reply:
    return api.get(f"/v1/code-audit/scans/{scan.scan_id}/issues", company.owner.token)


def fingerprints(reply: Reply) -> list[str]:
    return [issue["fingerprint"] for issue in reply.data["issues"]]


class Test200:
    def test_a_free_preview_returns_the_three_most_urgent_and_counts_the_rest(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), issues=ISSUES)
        reply = read(api, company, scan)
        assert reply.status == 200
        assert set(reply.data) == {"issues", "lockedCount", "unlockCredits", "expiredCount", "findingsExpireAt"}
        assert fingerprints(reply) == [issue.fingerprint for issue in ISSUES[:3]]
        assert (reply.data["lockedCount"], reply.data["unlockCredits"]) == (2, 50)
        assert ISSUES[3].fingerprint not in reply.text

    def test_a_full_scan_shows_all_findings(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), again="full", issues=ISSUES)
        reply = read(api, company, scan)
        assert fingerprints(reply) == [issue.fingerprint for issue in ISSUES]
        assert (reply.data["lockedCount"], reply.data["unlockCredits"]) == (0, None)

    def test_a_finding_has_all_fields(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        fix = Fix("Waits for consent.", "html", "<script></script>", ("c15t@^2.2",))
        vendor = FindingVendor("google-analytics", "Google Analytics", "google-analytics.com")
        found = replace(ISSUES[2], confidence="low", fix=fix, vendors=(vendor,))
        scan = make_scan(repository, issues=[found])
        item = publications.publish_finding(findings.as_discovery(scan, found))
        (issue,) = read(api, company, scan).data["issues"]
        assert issue == {
            "id": f"{scan.scan_id}:{found.fingerprint[:16]}",
            "scanId": scan.scan_id,
            "fingerprint": found.fingerprint,
            "ruleId": "tracker-before-consent",
            "title": "Google Analytics loads before consent",
            "description": "A script of googletagmanager.com is loaded before anybody agreed.",
            "category": "trackers",
            "severity": "high",
            "priority": "P1",
            "confidence": "low",
            "status": "open",
            "inboxItemId": item.item_id,
            "location": {
                "path": "src/app.tsx",
                "startLine": 3,
                "endLine": 4,
                "startColumn": 1,
                "endColumn": 9,
                "snippet": "<script>",
                "permalink": found.location.permalink,
            },
            "remediation": "Load it in the consent callback.",
            "fix": {
                "summary": "Waits for consent.",
                "language": "html",
                "code": "<script></script>",
                "packages": ["c15t@^2.2"],
            },
            "references": ["https://gdpr-info.eu/art-7-gdpr/"],
            "firstSeenAt": "2026-03-04T05:06:07.000Z",
            "vendor": {"id": "google-analytics", "name": "Google Analytics", "domain": "google-analytics.com"},
            "decisions": [],
        }

    def test_a_finding_of_several_vendors_names_none(self, api: Api, world: World):
        company = world.company()
        vendors = tuple(FindingVendor(name, name.title(), f"{name}.com") for name in ("segment", "hotjar"))
        found = replace(ISSUES[0], vendors=vendors)
        scan = make_scan(world.connected_repository(company), issues=[found])
        assert [issue["vendor"] for issue in read(api, company, scan).data["issues"]] == [None]

    @pytest.mark.parametrize("status", ["accepted", "dismissed", "resolved"])
    def test_the_status_is_the_inbox_item_s(self, status: Status, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), issues=ISSUES[:1])
        item = publications.publish_finding(findings.as_discovery(scan, ISSUES[0]))
        inbox.change_status(item, status, item.version, company.owner.user_id, None)
        assert [issue["status"] for issue in read(api, company, scan).data["issues"]] == [status]

    def test_findings_of_a_crashed_attempt_are_not_shown(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), issues=ISSUES[:1])
        stray = {**keys.finding(scan.scan_id, 2, 0)._asdict(), **ISSUES[4].to_item()}
        table.put_all([stray], PREPARED)
        assert fingerprints(read(api, company, scan)) == [ISSUES[0].fingerprint]

    def test_a_locked_scan_without_findings_is_readable(self, api: Api, world: World):
        company = world.company("free")
        scan = make_scan(world.connected_repository(company), again="locked")
        assert read(api, company, scan).data == {**NONE, "unlockCredits": 0}

    def test_expired_findings_of_a_locked_scan_are_not_offered_for_credits(self, api: Api, world: World):
        company = world.company("free")
        scan = make_scan(world.connected_repository(company), again="locked", issues=ISSUES)
        table.update(Update(scan.key, "SET #findingsExpireAt = :past", values={"past": 1}), PREPARED)
        reply = read(api, company, scan)
        assert (reply.status, reply.data["issues"], reply.data["expiredCount"]) == (200, [], 5)

    def test_five_hundred_findings_fit_into_one_response(self, api: Api, world: World):
        company = world.company()
        many = [make_issue(number, path="src/" + "x" * 200) for number in range(1, 501)]
        scan = make_scan(world.connected_repository(company), again="full", issues=many)
        reply = read(api, company, scan)
        assert len(reply.data["issues"]) == 500
        assert len(reply.text) < 6 * 1024 * 1024


class Test402:
    def test_a_locked_scan_shows_its_count_and_price(self, api: Api, world: World):
        company = world.company("free")
        scan = make_scan(world.connected_repository(company), again="locked", issues=ISSUES)
        reply = read(api, company, scan)
        assert (reply.status, reply.code) == (402, "UNLOCK_REQUIRED")
        assert reply.error["details"] == {"scanId": scan.scan_id, "unlockCredits": 50, "lockedCount": 5}
        assert not any(issue.fingerprint in reply.text for issue in ISSUES)


class Test404:
    def test_another_organizations_scan_looks_like_an_unknown_one(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), issues=ISSUES)
        stranger = world.company()
        foreign = read(api, stranger, scan)
        unknown = f"scn_{company.organization_id[4:]}{ids.new_local()}"
        assert foreign.status == 404
        assert foreign.text == api.get(f"/v1/code-audit/scans/{unknown}/issues", stranger.owner.token).text


class Test409:
    @each("again", [None, "full", "locked"])
    @each("status", ["queued", "running"])
    def test_an_open_scan_is_in_progress_whatever_its_access(
        self, status: str, again: Access | None, api: Api, world: World
    ):
        company = world.company()
        scan = make_scan(world.connected_repository(company), status=status, again=again)
        reply = read(api, company, scan)
        assert (reply.status, reply.code) == (409, "SCAN_IN_PROGRESS")
        assert reply.error["details"] == {"scanId": scan.scan_id, "status": status}
        assert int(reply.headers["retry-after"]) > 0

    @pytest.mark.parametrize("again", [None, "full", "locked"])
    def test_a_failed_scan_says_that_it_failed(self, again: Access | None, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), status="failed", again=again)
        reply = read(api, company, scan)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["message"].startswith("The scan failed")
        assert reply.error["details"] == {"scanId": scan.scan_id, "status": "failed"}
        assert "retry-after" not in reply.headers

    def test_a_canceled_scan_says_that_it_was_canceled(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), status="failed")
        table.update(Update(scan.key, "SET #status = :status", values={"status": "canceled"}), PREPARED)
        reply = read(api, company, scan)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["message"].startswith("The scan was canceled")
        assert reply.error["details"] == {"scanId": scan.scan_id, "status": "canceled"}

    def test_a_scan_is_readable_as_soon_as_it_is_completed(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), status="running")
        assert read(api, company, scan).status == 409
        end_scan(scan)
        assert read(api, company, scan).data == {**NONE, "unlockCredits": 0}


class TestReadAhead:
    """The findings are read at the same time as the scan, as if its first attempt had stored them."""

    def test_findings_of_a_later_attempt_are_listed(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), again="full", issues=ISSUES[:2])
        findings.put_findings(scan.scan_id, 2, ISSUES[2:])
        values = {"two": 2, "count": len(ISSUES[2:])}
        table.update(Update(scan.key, "SET #findingsAttempt = :two, #issueCount = :count", values=values), PREPARED)
        assert fingerprints(read(api, company, scan)) == [issue.fingerprint for issue in ISSUES[2:]]

    @pytest.mark.parametrize("report", ["issues", "diff"])
    def test_a_scan_that_is_completed_after_its_findings_were_read_has_them_all(
        self, report: str, api: Api, world: World
    ):
        company = world.company()
        scan = make_scan(world.connected_repository(company), again="full", issues=ISSUES)
        early: list[str] = []

        def around(call: Call, proceed: Proceed) -> Any:
            answer = proceed()
            if call.operation == "Query" and "SCAN#" in str(call.parameters) and not early:
                early.append(call.operation)
                return {**answer, "Items": answer["Items"][:2]}
            return answer

        with intercepted(table.client, around):
            reply = api.get(f"/v1/code-audit/scans/{scan.scan_id}/{report}", company.owner.token)
        assert early
        shown = reply.data["issues" if report == "issues" else "new"]
        assert [issue["fingerprint"] for issue in shown] == [issue.fingerprint for issue in ISSUES]

    def test_a_caller_who_is_refused_gets_nothing_of_it(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), again="full", issues=ISSUES)
        unknown = f"{scan.scan_id[:-1]}{'0' if scan.scan_id[-1] != '0' else '1'}"
        stranger = world.company().owner.token
        for report in ("issues", "sarif", f"diff?base={scan.scan_id}"):
            replies = [api.get(f"/v1/code-audit/scans/{it}/{report}", stranger) for it in (scan.scan_id, unknown)]
            assert [reply.code for reply in replies] == ["NOT_FOUND"] * 2
            assert replies[0].text == replies[1].text

"""Retention: items past their retention period expire and are reported as expired, and nothing else is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.feedback import store as feedback
from controlplane.findings import inbox, intake, vendors
from controlplane.findings.items import GithubIssue
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.outbox import new_entry
from controlplane.platform.table import keys
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Delete, table
from controlplane.projects import store as projects
from controlplane.scans import findings, reads, unlocks
from controlplane.scans.findings import FindingItem
from controlplane.scans.items import ScanItem, work_key
from tests.functional.conftest import FakeClock
from tests.functional.projects.builders import add_audits, add_run, make_project
from tests.support.api import Api, Reply
from tests.support.audits import make_issue, make_scan
from tests.support.calls import Call, Proceed, before_the_update_of, intercepted
from tests.support.cleanup import clean_up, clean_up_failing
from tests.support.populated_organization import detection
from tests.support.table import PREPARED
from tests.support.world import Company, World, publish_finding, table_dump

DAY = 86_400
ISSUES = [make_issue(number) for number in range(1, 6)]
ISSUE = GithubIssue(1, "https://github.com/acme/shop/issues/1", "2026-03-04T05:06:07Z")


@pytest.fixture
def company(world):
    return world.company()


def set_days(monkeypatch: pytest.MonkeyPatch, name: str, days: int) -> None:
    monkeypatch.setitem(settings.__dict__, f"{name}_retention_days", days)


def expiries(*starts: str) -> set[float | None]:
    """Returns the expiry times of the items whose partition or sort key has one of these prefixes."""
    found = [it for it in table_dump() if it["pk"]["S"].startswith(starts) or it["sk"]["S"].startswith(starts)]
    assert found
    return {float(it["expiresAt"]["N"]) if "expiresAt" in it else None for it in found}


def issues(api: Api, company: Company, scan: ScanItem) -> Reply:
    return api.get(f"/v1/code-audit/scans/{scan.scan_id}/issues", bearer(company))


def bearer(company: Company) -> str:
    """Returns a token that is valid now: the company's own token expires before any item does."""
    return World().token(company.owner.user_id)


def later_scan(repository: RepositoryItem, now: FakeClock, found: Sequence[FindingItem] = ISSUES[:1]) -> ScanItem:
    """Advances the clock and creates a newer scan."""
    now.advance(1)
    return make_scan(repository, issues=found)


@contextmanager
def dying_at(scan: ScanItem) -> Iterator[None]:
    """Kills what updates that scan."""

    def broken(call: Call, proceed: Proceed) -> Any:
        if call.operation == "UpdateItem" and scan.scan_id.local in str(call.parameters):
            raise RuntimeError
        return proceed()

    with intercepted(table.client, broken):
        yield


class TestFindings:
    @pytest.fixture
    def repository(self, world, company):
        return world.connected_repository(company)

    @pytest.fixture
    def scan(self, repository, now):
        """Returns a superseded scan; the newer one was created a minute later."""
        first = make_scan(repository, issues=ISSUES)
        now.advance(60)
        make_scan(repository, issues=ISSUES)
        clean_up()
        return first

    def test_findings_of_the_latest_scan_are_kept(self, repository, company, now, api):
        scan = make_scan(repository, issues=ISSUES)
        clean_up()
        now.advance(1000 * DAY)
        assert clean_up() == 0
        assert expiries("FINDING#") == {None}
        reply = issues(api, company, scan)
        assert (len(reply.data["issues"]), reply.data["expiredCount"], reply.data["findingsExpireAt"]) == (3, 0, None)

    def test_findings_of_a_superseded_scan_expire_are_reported_as_expired_and_cost_nothing(
        self, company, scan, world, now, api
    ):
        """TTL may run days late: readers compare the expiry with the clock."""
        assert expiries(keys.scan_pk(scan.scan_id)) == {now.seconds + 90 * DAY}
        before = issues(api, company, scan).data
        assert (len(before["issues"]), before["lockedCount"], before["expiredCount"]) == (3, 2, 0)
        expired = {"findingsExpireAt": "2026-06-02T05:07:07.000Z", "unlockCredits": None}
        assert before["findingsExpireAt"] == expired["findingsExpireAt"]
        world.credits(company, 100)
        now.advance(90 * DAY)
        after = issues(api, company, scan).data
        assert after == {**expired, "issues": [], "lockedCount": 0, "expiredCount": 5}
        shown = api.get(f"/v1/code-audit/scans/{scan.scan_id}", bearer(company)).data
        assert {name: shown[name] for name in (*expired, "issueCount")} == {**expired, "issueCount": 5}
        reply = api.post(f"/v1/code-audit/scans/{scan.scan_id}/unlock", bearer(company))
        assert (reply.status, reply.error["details"]["reason"]) == (409, "findings_expired")
        assert api.get("/v1/billing", bearer(company)).data["credits"]["balance"] == 100

    def test_paid_findings_are_kept_while_their_scan_is_the_latest(self, world, company, repository, now, api):
        scan = make_scan(repository, issues=ISSUES)
        world.credits(company, 50)
        unlocks.charge(scan, company.owner.user_id, new_entry("scan-execution", {}))
        now.advance(1000 * DAY)
        assert len(issues(api, company, scan).data["issues"]) == 5
        make_scan(repository, issues=ISSUES)
        clean_up()
        assert expiries(keys.scan_pk(scan.scan_id)) == {now.seconds + 90 * DAY}

    def test_findings_of_another_project_of_the_repository_are_kept(self, company, repository):
        make_scan(repository, issues=ISSUES)
        link = Link(make_project(company, "Other").project_id, None, None, False)
        repositories.unlink_project(repository.repository_id, repository.links[0].project_id)
        make_scan(repositories.link_project(repository.repository_id, link), issues=ISSUES)
        clean_up()
        assert expiries("FINDING#") == {None}

    def test_findings_of_all_earlier_scans_expire_once_there_is_a_period_also_after_a_crash(
        self, repository, now, monkeypatch
    ):
        set_days(monkeypatch, "finding", 0)
        earlier = [later_scan(repository, now) for _ in range(3)]
        assert clean_up() == 0
        set_days(monkeypatch, "finding", 7)
        last = later_scan(repository, now)
        with dying_at(earlier[0]):
            clean_up_failing(1)
        now.advance(60)
        with dying_at(earlier[2]), pytest.raises(RuntimeError):
            findings.expire_superseded(last.scan_id)
        clean_up()
        marks = [reads.get_scan(scan.scan_id).findings_expire_at for scan in (*earlier, last)]
        assert marks == [now.seconds + 7 * DAY] * 3 + [None]
        *superseded, newest = last, *(later_scan(repository, now) for _ in range(3))
        findings.expire_superseded(newest.scan_id)
        assert None not in {reads.get_scan(scan.scan_id).findings_expire_at for scan in superseded}

    def test_findings_expire_even_if_their_scans_and_they_are_read_in_many_pages(self, repository, now, monkeypatch):
        monkeypatch.setattr(findings, "_PAGE", 2)
        *earlier, last = [later_scan(repository, now, ISSUES) for _ in range(4)]
        findings.expire_superseded(last.scan_id)
        ends = now.seconds + 90 * DAY
        assert [expiries(keys.scan_pk(scan.scan_id)) for scan in (*earlier, last)] == [{ends}] * 3 + [{None}]

    def test_a_superseded_scan_that_is_deleted_stays_deleted(self, repository, now):
        earlier, later = (later_scan(repository, now) for _ in range(2))
        delete = Delete(earlier.key)
        with before_the_update_of(table.client, "findingsExpireAt", lambda: table.delete(delete, PREPARED)):
            findings.expire_superseded(later.scan_id)
        assert table.get(earlier.key) is None
        table.delete_all([work_key(later.scan_id)], PREPARED)
        clean_up()
        assert not any(it["pk"]["S"].startswith("DELETIONS") for it in table_dump())


class TestResolvedItems:
    def test_resolved_items_expire_a_year_after_they_were_resolved(self, api, world, company, now):
        item = world.finding(company)
        body = {"status": "resolved", "version": item.version}
        reply = api.patch(f"/v1/inbox/{item.item_id}", company.owner.token, json_body=body)
        assert expiries("INBOX#") == {now.seconds + 365 * DAY}
        for status in ("open", "accepted", "dismissed"):
            body = {"status": status, "version": reply.data["version"]}
            reply = api.patch(f"/v1/inbox/{item.item_id}", company.owner.token, json_body=body)
            assert reply.status == 200
            assert expiries("INBOX#") == {None}

    def test_resolved_items_keep_their_expiry_until_they_are_found_again(self, world, company, now):
        found = world.discovery(company, world.connected_repository(company))
        item = publish_finding(found)
        item = inbox.change_status(item, "resolved", item.version, company.owner.user_id, None)
        ends = now.seconds + 365 * DAY
        now.advance(60)
        leg = inbox.update_leg(item, "v2", fields={"githubIssue": to_map(ISSUE)}, when="attribute_exists(pk)")
        table.update(leg, PREPARED)
        assert expiries("INBOX#") == {ends}
        assert publish_finding(found._replace(observed_at="2026-03-04T05:07:00.000Z")).status == "open"
        assert expiries("INBOX#") == {None}

    def test_a_vendors_expired_item_doesnt_prevent_a_decision(self, company):
        project = make_project(company)
        intake.record_detection(detection(project.project_id))
        item_id = vendors.decide_vendor(project, "segment", "approved", company.owner.user_id)
        assert item_id is not None
        table.delete_all([keys.inbox_item(*InboxItemId.stored(item_id).location)], PREPARED)
        assert vendors.decide_vendor(project, "segment", "ignored", company.owner.user_id) is None
        intake.record_detection(detection(project.project_id, observedAt="2026-03-04T06:00:00.000Z"))
        assert inbox.get_item(InboxItemId.stored(item_id)).status == "resolved"

    def test_resolved_items_are_kept_if_the_days_are_0(self, world, company, monkeypatch):
        set_days(monkeypatch, "resolved_item", 0)
        item = world.finding(company)
        inbox.change_status(item, "resolved", item.version, company.owner.user_id, None)
        assert expiries("INBOX#") == {None}


class TestAuditRunsAndFeedback:
    @pytest.mark.parametrize(("days", "left"), [(None, 400 * DAY), (3, 3 * DAY), (0, None)])
    def test_audit_runs_and_feedback_expire_after_their_days(self, company, now, monkeypatch, days, left):
        if days is not None:
            set_days(monkeypatch, "audit_run", days)
            set_days(monkeypatch, "feedback", days)
        project = projects.get_project(make_project(company).project_id)
        add_run(project, *add_audits(project))
        feedback.submit_report(company.owner.user_id, {"category": "bug", "message": "It is slow."})
        ends = None if left is None else now.seconds + left
        assert expiries("AUDITRUN#") == expiries("AUDITREPORT#") == expiries("FEEDBACK#", "FEEDBACKBY#") == {ends}
        assert expiries("FEEDBACKQUOTA#") == {now.seconds + DAY}

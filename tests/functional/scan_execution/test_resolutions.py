"""Findings over several scans: a fixed one is resolved, one that comes back reopens, and a moved one stays the same."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from controlplane.core.ids import RepositoryId
from controlplane.queues import messages
from controlplane.queues.messages import ExecuteScan, PublishScan, Queue
from controlplane.queues.worker import create_worker
from controlplane.store import billing, inbox, keys, repositories, vendors
from controlplane.store.inbox_items import InboxItem, RuntimeVendor, Status
from controlplane.store.projects import get_project
from controlplane.store.repositories import Link, RepositoryItem
from controlplane.store.scans import findings, reads
from controlplane.store.scans.findings import FindingItem
from controlplane.store.scans.history import list_history
from controlplane.store.scans.items import Access, ScanItem
from controlplane.store.table import Put, table
from controlplane.store.vendors import Detection
from scan_execution import publication
from scan_execution.messages import ACCEPTED, ScanMessage
from scan_execution.sandbox import Sandbox
from scan_execution.service import execute_scan, publish_scan
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.audits import make_scan
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World, table_dump

type Files = Mapping[str, str | bytes]

GA = '<script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script>\n'
HOTJAR = '<script async src="https://static.hotjar.com/c/hotjar-1.js"></script>\n'
BING = '<script async src="https://bat.bing.com/bat.js"></script>\n'
# Asks for consent, so that no finding about the whole project is reported.
CONSENT = {"src/consent.js": "CookieConsent.run({});\n"}
USER = "usr_0000000000000000"


def page(*scripts: str) -> str:
    return f"<!doctype html>\n<html><head>\n{''.join(scripts)}</head></html>\n"


class Audit:
    """Scans a repository, one minute after another."""

    def __init__(self, repository: RepositoryItem, sqs: FakeSqs, advance: Callable[[float], None]) -> None:
        self.repository, self._sqs, self._advance = repository, sqs, advance
        make_scan(repository)  # uses the free preview
        self._handler = create_worker(Queue.SCAN_EXECUTION, ACCEPTED, self._take)
        self._host = FakeHost()

    def _take(self, message: ScanMessage) -> None:
        if message.kind == "execute-scan":
            execute_scan(message, self._host.connect)
        else:
            publish_scan(message)

    def start(self, access: Access = "full") -> ScanItem:
        self._advance(60)
        return make_scan(repositories.get_repository(self.repository.repository_id), status="queued", access=access)

    def run(self, scan: ScanItem, files: Files) -> ScanItem:
        self._advance(60)
        self._host.archives = {SHA: archive({**CONSENT, **files})}
        self.deliver(ExecuteScan(scan_id=scan.scan_id))
        done = reads.get_scan(scan.scan_id)
        assert done.status == "completed", done
        return done

    def scan(self, files: Files, access: Access = "full") -> ScanItem:
        return self.run(self.start(access), files)

    def deliver(self, message: ScanMessage) -> None:
        self._advance(60)
        self._sqs.letters.clear()
        queue = Queue.SCAN_EXECUTION
        messages.send(queue.value, message.model_dump(by_alias=True))
        self._sqs.deliver(self._sqs.at(queue.url)[0], self._handler, queue.dead_letters_url)

    def items(self) -> list[InboxItem]:
        listed = inbox.list_items(self.repository.organization_id, None, 100, None).items
        return [inbox.get_item(item.item_id) for item in listed]

    def item(self, title: str = "Google Analytics") -> InboxItem:
        (found,) = [item for item in self.items() if title in item.title]
        return found

    def statuses(self) -> dict[str, Status]:
        return {item.title.partition(" is ")[0]: item.status for item in self.items()}

    def decide(self, status: Status, title: str = "Google Analytics") -> InboxItem:
        self._advance(60)
        item = self.item(title)
        return inbox.change_status(item, status, item.version, USER, "because")


def found_by(scan: ScanItem) -> list[FindingItem]:
    return findings.list_findings(scan.scan_id, scan.findings_attempt, 500)


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def repository(company: Company, world: World) -> RepositoryItem:
    return world.connected_repository(company)


@pytest.fixture
def audit(repository: RepositoryItem, sqs: FakeSqs, now: Any) -> Audit:
    return Audit(repository, sqs, now.advance)


class TestAFixedFinding:
    def test_is_resolved_with_the_scan_as_the_reason(self, audit: Audit, api: Api, company: Company):
        audit.scan({"a.html": page(GA, HOTJAR)})
        second = audit.scan({"a.html": page(HOTJAR)})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "open"}
        shown = api.get(f"/v1/inbox/{audit.item().item_id}", company.owner.token).data
        assert shown["resolvedBy"] == {"scanId": second.scan_id}
        assert shown["statusReason"] == f"Scan {second.scan_id} no longer finds it."
        resolved = api.get("/v1/inbox?status=resolved", company.owner.token).data
        assert [item["id"] for item in resolved] == [audit.item().item_id]

    def test_is_resolved_if_its_file_was_deleted(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.scan({})
        assert audit.statuses() == {"Google Analytics": "resolved"}

    def test_reopens_if_it_comes_back(self, audit: Audit):
        first = audit.scan({"a.html": page(GA)})
        audit.scan({})
        audit.scan({"a.html": page(GA)})
        item = audit.item()
        assert (item.status, item.status_reason, item.resolved_by) == ("open", None, None)
        (history,) = list_history(audit.repository.repository_id).values()
        assert (history.first_seen_at, history.gone) == (first.created_at, None)
        audit.scan({})
        assert audit.item().status == "resolved"

    @pytest.mark.parametrize("decided", ["dismissed", "accepted"])
    def test_keeps_the_decision_of_a_person(self, decided: Status, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide(decided)
        for files in ({}, {"a.html": page(GA)}, {}):
            audit.scan(files)
            assert (audit.item().status, audit.item().status_reason) == (decided, "because")

    def test_that_a_person_opens_again_is_resolved_by_the_next_scan(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide("dismissed")
        audit.scan({})
        audit.decide("open")
        scan = audit.scan({})
        assert (audit.item().status, audit.item().resolved_by) == ("resolved", scan.scan_id)

    def test_that_a_person_reopens_stays_open(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.scan({})
        audit.decide("open")
        audit.scan({})
        assert (audit.item().status, audit.item().resolved_by) == ("open", None)

    def test_resolved_by_a_person_reopens_when_it_is_found_after_that(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide("resolved")
        audit.scan({"a.html": page(GA)})
        assert audit.item().status == "open"

    def test_is_resolved_by_scans_that_hide_what_they_find(self, audit: Audit):
        audit.scan({"a.html": page(GA, HOTJAR)})
        audit.scan({"a.html": page(HOTJAR)}, "locked")
        assert audit.item("Google Analytics").status == "resolved"
        assert audit.item("Hotjar").status == "open"
        audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
        assert audit.item("Google Analytics").status == "open"

    def test_is_resolved_in_a_repository_with_more_findings_than_a_scan_keeps(
        self, audit: Audit, monkeypatch: pytest.MonkeyPatch
    ):
        """The findings that aren't kept are still there, so they aren't resolved, and reopen if they come back."""
        everything = {"a.html": page(GA, HOTJAR, BING), "b.html": page(GA)}
        audit.scan(everything)
        items = {item.item_id for item in audit.items()}
        monkeypatch.setattr(publication, "MOST_ISSUES", 1)
        scan = audit.scan({**everything, "a.html": page(GA, BING)})
        assert (scan.issue_count, scan.finding_count) == (1, 3)
        assert {item.item_id for item in audit.items() if item.status == "open"} == items - {
            audit.item("Hotjar").item_id
        }
        audit.scan(everything)
        assert {item.status for item in audit.items()} == {"open"}

    def test_stays_open_if_its_file_was_not_analyzed(self, audit: Audit, monkeypatch: pytest.MonkeyPatch):
        names = ("large.html", "minified.html", "link.html", "attack/abort.js", "kept.html")
        tracker = "const s = document.createElement('script'); s.src = 'https://static.hotjar.com/c/hotjar-1.js';\n"
        audit.scan({name: page(GA) if name.endswith("html") else tracker for name in names})
        assert len(audit.items()) == 5
        monkeypatch.setattr("scan_execution.service.Sandbox", partial(Sandbox, entry="tests.support.hostile:start"))
        files = {"large.html": page(GA) * 9_000, "minified.html": page(GA) + "x" * 60_000, "attack/abort.js": tracker}
        scan = audit.scan(files)
        assert scan.coverage is not None
        assert (scan.coverage.files, scan.coverage.analyzed_files) == (4, 1)
        open_paths = {item.evidence[0].path for item in audit.items() if item.status == "open"}
        assert open_paths == files.keys()

    def test_of_another_project_stays_open(self, audit: Audit, company: Company):
        (web,) = audit.repository.links
        admin = make_project(company, "Admin")
        repository_id = audit.repository.repository_id
        repositories.link_project(repository_id, Link(web.project_id, None, "apps/web", False))
        consent = {f"apps/{name}/consent.js": CONSENT["src/consent.js"] for name in ("web", "admin")}
        audit.scan({**consent, "apps/web/a.html": page(GA), "apps/admin/b.html": page(HOTJAR)})
        _link_first(repository_id, Link(admin.project_id, "develop", "apps/admin", False))
        audit.scan({**consent, "apps/admin/b.html": page(HOTJAR)})
        assert audit.statuses() == {"Google Analytics": "open", "Hotjar": "open"}
        _link_first(repository_id, Link(web.project_id, None, None, False))
        audit.scan({"apps/admin/b.html": page()})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "open"}
        repositories.unlink_project(repository_id, admin.project_id)
        audit.scan({})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "resolved"}

    def test_about_the_whole_project_is_resolved_once_something_asks_for_consent(self, audit: Audit):
        audit.scan({"a.html": page(GA), "src/consent.js": "1"})
        assert audit.item("never asks").status == "open"
        audit.scan({"a.html": page(GA), "large.html": page(GA) * 9_000})
        assert audit.item("never asks").status == "resolved"

    def test_is_resolved_if_only_earlier_releases_found_it(self, audit: Audit):
        audit.scan({"a.html": page(GA), "b.html": page(HOTJAR)})
        for known in list_history(audit.repository.repository_id).values():
            table.put(Put({**known.key._asdict(), "firstSeenAt": known.first_seen_at}))
        audit.scan({"b.html": page(HOTJAR)})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "open"}
        audit.scan({})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "resolved"}


def _link_first(repository_id: RepositoryId, link: Link) -> None:
    """Links the project, as the first one, which `make_scan` scans."""
    repository = repositories.link_project(repository_id, link)
    links = sorted(repository.links, key=lambda it: it.project_id != link.project_id)
    table.put(
        Put({**(table.get(keys.repository(*repository_id.location)) or {}), "links": [it.to_item() for it in links]})
    )


class TestAMovedFinding:
    @pytest.mark.parametrize("decided", ["open", "dismissed", "accepted"])
    def test_stays_the_same_with_a_new_location(self, decided: Status, audit: Audit):
        first = audit.scan({"src/a.html": page(GA)})
        audit.decide(decided)
        before = audit.item()
        second = audit.scan({"lib/renamed.html": page(GA)})
        after = audit.item()
        assert (after.item_id, after.status) == (before.item_id, decided)
        assert after.evidence[0].path == "lib/renamed.html"
        (finding,) = found_by(second)
        assert finding.fingerprint == found_by(first)[0].fingerprint
        assert (finding.location.path, finding.first_seen_at) == ("lib/renamed.html", first.created_at)

    def test_stays_the_same_when_it_moves_on_and_back(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        for name in ("b.html", "c.html", "a.html", "b.html"):
            audit.scan({name: page(GA)})
            assert audit.statuses() == {"Google Analytics": "open"}
            assert audit.item().evidence[0].path == name
        audit.scan({})
        assert audit.item().status == "resolved"

    def test_leaves_its_old_place_to_a_new_finding(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide("dismissed")
        audit.scan({"b.html": page(GA)})
        audit.scan({"a.html": page(GA), "b.html": page(GA)})
        by_path = {item.evidence[0].path: item.status for item in audit.items()}
        assert by_path == {"a.html": "open", "b.html": "dismissed"}
        scan = audit.scan({"a.html": page(GA), "b.html": page(GA)})
        assert len({finding.fingerprint for finding in found_by(scan)}) == 2
        assert len(audit.items()) == 2

    def test_is_not_the_copy_of_one_that_stays(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide("dismissed")
        audit.scan({"a.html": page(GA), "b.html": page(GA)})
        assert sorted(item.status for item in audit.items()) == ["dismissed", "open"]

    def test_is_not_another_one_that_was_gone_before(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide("dismissed")
        audit.scan({})
        audit.scan({"b.html": page(GA)})
        assert sorted(item.status for item in audit.items()) == ["dismissed", "open"]

    def test_is_the_one_with_the_most_similar_path(self, audit: Audit):
        audit.scan({"web/a.html": page(GA), "web/b.html": page(GA)})
        before = {item.evidence[0].path: item.item_id for item in audit.items()}
        audit.scan({"app/b.html": page(GA), "app/a.html": page(GA)})
        after = {item.evidence[0].path: item.item_id for item in audit.items()}
        assert after == {"app/a.html": before["web/a.html"], "app/b.html": before["web/b.html"]}

    def test_in_a_locked_scan_is_recognized_without_showing_where_it_is(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        before = audit.item()
        audit.scan({"b.html": page(GA)}, "locked")
        assert audit.items() == [before]


class TestALockedScan:
    def test_puts_one_item_into_the_inbox_that_reveals_nothing(self, audit: Audit, api: Api, company: Company):
        audit.scan({"a.html": page(GA)})
        scan = audit.scan({"a.html": page(GA, HOTJAR), "b.html": page(BING)}, "locked")
        (notice,) = [item for item in audit.items() if item.locked_findings]
        shown = api.get(f"/v1/inbox/{notice.item_id}", company.owner.token).data
        assert shown["title"] == f"2 new findings in {scan.repository_name} are locked"
        assert shown["summary"] == (
            "A scan of main found 2 new findings. Unlocking the report costs 50 credits. "
            "An owner of the organization can unlock it."
        )
        assert shown["lockedFindings"] == {"scanId": scan.scan_id, "newCount": 2, "unlockCredits": 50}
        assert (shown["source"], shown["status"], shown["priority"]) == ("code-audit", "open", None)
        assert (shown["evidence"], shown["description"], shown["remediation"]) == ([], None, None)
        stored = str(table.get(keys.inbox_item(*notice.item_id.location)))
        for secret in ("otjar", "bat.", "Bing", "Microsoft", "html", "P1", "high", "track"):
            assert secret not in stored, secret

    def test_of_the_same_repository_updates_that_item(self, audit: Audit):
        audit.scan({}, "locked")
        assert audit.items() == []
        audit.scan({"a.html": page(GA)}, "locked")
        (first,) = audit.items()
        assert first.title == f"1 new finding in {audit.repository.name} is locked"
        scan = audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
        (second,) = audit.items()
        assert second.item_id == first.item_id
        assert second.locked_findings is not None
        assert (second.locked_findings.scan_id, second.locked_findings.new_count) == (scan.scan_id, 2)
        audit.scan({}, "locked")
        (third,) = audit.items()
        assert (third.status, third.resolved_by is not None) == ("resolved", True)
        audit.scan({"a.html": page(GA)}, "locked")
        assert [item.status for item in audit.items()] == ["open"]

    def test_dismissed_by_a_person_stays_dismissed(self, audit: Audit):
        audit.scan({"a.html": page(GA)}, "locked")
        audit.decide("dismissed", "locked")
        audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
        assert audit.item("locked").status == "dismissed"

    def test_is_no_longer_announced_after_a_full_scan(self, audit: Audit):
        audit.scan({"a.html": page(GA)}, "locked")
        audit.scan({"a.html": page(GA)})
        assert audit.item("locked").status == "resolved"
        assert audit.item("Google Analytics").status == "open"

    def test_that_is_unlocked_publishes_its_findings_and_resolves_the_item(
        self, audit: Audit, api: Api, company: Company
    ):
        scan = audit.scan({"a.html": page(GA)}, "locked")
        _unlock(api, company, scan)
        audit.deliver(PublishScan(scan_id=scan.scan_id))
        assert audit.item("locked").status == "resolved"
        assert audit.item("locked").status_reason == f"The findings of scan {scan.scan_id} were unlocked."
        assert audit.item("Google Analytics").status == "open"
        before = table_dump()
        audit.deliver(PublishScan(scan_id=scan.scan_id))
        assert table_dump() == before

    def test_that_is_unlocked_late_raises_nothing_that_is_fixed(self, audit: Audit, api: Api, company: Company):
        scan = audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
        later = audit.scan({"a.html": page(HOTJAR)}, "locked")
        _unlock(api, company, scan)
        audit.deliver(PublishScan(scan_id=scan.scan_id))
        fixed = audit.item("Google Analytics")
        assert (fixed.status, fixed.resolved_by) == ("resolved", later.scan_id)
        assert audit.item("Hotjar").status == "open"
        assert audit.item("locked").status == "open"  # it announces the later scan
        audit.scan({"a.html": page(GA, HOTJAR)})
        assert audit.item("Google Analytics").status == "open"

    def test_can_not_become_an_issue(self, audit: Audit, api: Api, company: Company):
        scan = audit.scan({"a.html": page(GA)}, "locked")
        reply = api.post(f"/v1/inbox/{audit.item('locked').item_id}/github-issue", company.owner.token)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"reason": "findings_locked", "scanId": scan.scan_id}

    def test_that_is_a_free_preview_announces_nothing(self, world: World, company: Company, sqs: FakeSqs, now: Any):
        audit = Audit(world.connected_repository(company), sqs, now.advance)
        table.put(Put({**(table.get(keys.repository(*audit.repository.location)) or {}), "previewUsed": False}))
        audit.scan({f"{name}.html": page(GA) for name in "abcde"}, "free-preview")
        assert len(audit.items()) == 3
        assert not any(item.locked_findings for item in audit.items())


def _unlock(api: Api, company: Company, scan: ScanItem) -> None:
    billing.add_credits(company.organization_id, 50)
    assert api.post(f"/v1/code-audit/scans/{scan.scan_id}/unlock", company.owner.token).data == {"status": "unlocked"}


class TestAVendorThatWasDecidedOn:
    @pytest.mark.parametrize("state", ["approved", "ignored"])
    def test_is_not_raised_again_and_its_findings_name_the_decision(
        self, state: vendors.VendorState, audit: Audit, api: Api, company: Company
    ):
        _decide(audit, "google-analytics", state)
        scan = audit.scan({"a.html": page(GA, HOTJAR)})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "open"}
        shown = api.get(f"/v1/inbox/{audit.item().item_id}", company.owner.token).data
        (decision,) = shown["decisions"]
        assert (decision["vendorId"], decision["state"]) == ("google-analytics", state)
        assert shown["statusReason"] == f"The project {state} Google Analytics."
        issues = api.get(f"/v1/code-audit/scans/{scan.scan_id}/issues", company.owner.token).data["issues"]
        named = {issue["vendor"]["id"]: (issue["status"], issue["decisions"]) for issue in issues}
        assert named == {"google-analytics": ("resolved", [decision]), "hotjar": ("open", [])}
        audit.scan({"a.html": page(GA, HOTJAR)})
        assert audit.item().status == "resolved"

    def test_resolves_its_open_findings_at_the_next_scan(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        _decide(audit, "google-analytics", "approved")
        assert audit.item().status == "open"
        audit.scan({"a.html": page(GA)}, "locked")
        item = audit.item()
        assert (item.status, [decision.state for decision in item.decisions]) == ("resolved", ["approved"])
        _decide(audit, "google-analytics", "ignored")
        audit.scan({"a.html": page(GA)})
        assert [decision.state for decision in audit.item().decisions] == ["ignored"]
        assert audit.item().status == "resolved"

    @pytest.mark.parametrize("decided", ["dismissed", "accepted"])
    def test_keeps_the_decision_of_a_person_on_the_finding(self, decided: Status, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide(decided)
        _decide(audit, "google-analytics", "approved")
        audit.scan({"a.html": page(GA)})
        assert audit.item().status == decided

    def test_stays_open_if_a_person_reopens_its_finding(self, audit: Audit):
        _decide(audit, "google-analytics", "approved")
        audit.scan({"a.html": page(GA)})
        audit.decide("open")
        audit.scan({"a.html": page(GA)})
        assert audit.item().status == "open"

    def test_is_recognized_by_the_domain_that_the_runtime_saw(self, audit: Audit):
        _detect(audit, "ga4-tag", "www.google-analytics.com")
        _decide(audit, "ga4-tag", "approved")
        _decide(audit, "hotjar.com", "ignored")
        audit.scan({"a.html": page(GA, HOTJAR, BING)})
        statuses = audit.statuses()
        assert (statuses["Google Analytics"], statuses["Hotjar"]) == ("resolved", "resolved")
        assert audit.item("Microsoft").status == "open"
        code = [item for item in audit.items() if "Google Analytics is" in item.title]
        assert [decision.vendor_id for decision in code[0].decisions] == ["ga4-tag"]

    def test_of_another_project_is_raised(self, audit: Audit, company: Company):
        other = make_project(company, "Other")
        vendors.decide_vendor(get_project(other.project_id), "google-analytics", "approved", USER)
        audit.scan({"a.html": page(GA)})
        assert audit.item().status == "open"

    def test_settles_a_finding_about_several_vendors_only_together_with_them(self, audit: Audit):
        files = {"a.html": page(GA, HOTJAR), "src/consent.js": "1"}
        _decide(audit, "google-analytics", "approved")
        audit.scan(files)
        assert audit.item("never asks").status == "open"
        _decide(audit, "hotjar", "ignored")
        audit.scan(files)
        item = audit.item("never asks")
        assert (item.status, len(item.decisions)) == ("resolved", 2)
        assert item.status_reason == "The project approved Google Analytics, ignored Hotjar."

    def test_does_not_excuse_personal_data(self, audit: Audit):
        _decide(audit, "google-analytics", "approved")
        code = "const i = new Image(); i.src = `https://www.google-analytics.com/collect?email=${user.email}`;\n"
        audit.scan({"a.js": code})
        (item,) = [item for item in audit.items() if item.rule_id == "personal-data-in-tracking-address"]
        assert (item.status, item.decisions) == ("open", ())

    def test_is_not_counted_among_the_locked_findings(self, audit: Audit):
        _decide(audit, "google-analytics", "approved")
        audit.scan({"a.html": page(GA)}, "locked")
        assert audit.items() == []


def _decide(audit: Audit, vendor_id: str, state: vendors.VendorState) -> None:
    (link,) = audit.repository.links
    vendors.decide_vendor(get_project(link.project_id), vendor_id, state, USER)


def _detect(audit: Audit, vendor_id: str, domain: str) -> None:
    (link,) = audit.repository.links
    vendor = RuntimeVendor(link.project_id, vendor_id, "GA4", domain)
    detection = Detection(
        vendor=vendor,
        category="analytics",
        title="GA4 was seen",
        summary="",
        priority="P2",
        evidence=(),
        observed_at="2026-03-04T05:00:00.000Z",
    )
    vendors.record_detection(detection)

"""Runtime vendor detections: one vendor and one finding each, despite duplicate or out-of-order deliveries."""

from itertools import permutations
from typing import Any

import pytest

from controlplane.store import inbox, keys, projects, vendors
from controlplane.store.inbox_items import InboxItem
from controlplane.store.project_items import ProjectItem
from controlplane.store.table import Delete, table
from tests.functional.finding_intake.conftest import Intake, detection, items_of, vendors_of
from tests.support.api import Api
from tests.support.crashes import dies_at
from tests.support.table import PREPARED
from tests.support.world import Company, table_dump


class TestFirst:
    def test_the_first_detection_creates_vendor_and_finding_that_refer_to_each_other(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        pages = ["https://shop.example.com/a?user=ada#top", "http://localhost:5173/b"]
        intake.take(detection(project, category="analytics", seenOn=pages))
        (vendor,), (item,) = vendors_of(project), items_of(company)
        assert vendor == {
            "pk": vendor["pk"],
            "sk": vendor["sk"],
            "vendorId": "segment",
            "projectId": project.project_id,
            "name": "Segment",
            "domain": "cdn.segment.com",
            "category": "analytics",
            "reviewState": "suggested",
            "inboxItemId": item["itemId"],
            "firstSeenAt": "2026-03-04T05:00:00.000Z",
            "lastSeenAt": "2026-03-04T05:00:00.000Z",
            "beforeConsent": False,
            "evidence": [
                {"description": "A page that loads cdn.segment.com", "url": url, "seenAt": "2026-03-04T05:00:00.000Z"}
                for url in ("https://shop.example.com/a", "http://localhost:5173/b")
            ],
            "revision": 1,
        }
        assert (item["source"], item["status"], item["priority"]) == ("runtime", "open", "P2")
        assert item["title"] == "New vendor: Segment"
        assert item["projectId"] == project.project_id
        assert item["runtimeVendor"] == {
            "projectId": project.project_id,
            "vendorId": "segment",
            "name": "Segment",
            "domain": "cdn.segment.com",
        }
        # The part after the path may contain personal data.
        assert [shown["url"] for shown in item["evidence"]] == ["https://shop.example.com/a", "http://localhost:5173/b"]
        assert (intake.waiting, intake.dead) == (0, [])

    def test_a_vendor_needs_review_until_it_is_recognized(self, intake: Intake, project: ProjectItem):
        intake.take(detection(project))
        assert vendors_of(project)[0]["reviewState"] == "needs_review"
        intake.take(detection(project, category="analytics", observedAt="2026-03-04T05:01:00Z"))
        assert vendors_of(project)[0]["reviewState"] == "suggested"

    def test_a_vendor_loaded_before_consent_is_more_urgent(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        intake.take(detection(project, beforeConsent=True))
        (item,) = items_of(company)
        assert (item["priority"], item["title"]) == ("P1", "Segment loads before consent")

    def test_the_api_returns_the_finding_in_the_inbox(
        self, intake: Intake, company: Company, project: ProjectItem, api: Api
    ):
        intake.take(detection(project))
        (listed,) = api.get("/v1/inbox", company.owner.token).data
        shown = api.get(f"/v1/inbox/{listed['id']}", company.owner.token).data
        assert (shown["source"], shown["status"]) == ("runtime", "open")
        assert shown["runtimeVendor"]["vendorId"] == "segment"

    def test_each_vendor_of_each_project_has_its_own_finding(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        from tests.functional.projects.builders import make_project

        other = make_project(company, "Other")
        messages = [detection(of, vendorId=vendor) for of in (project, other) for vendor in ("segment", "hotjar")]
        intake.take(*messages)
        assert len(items_of(company)) == 4
        assert len(vendors_of(project)) == len(vendors_of(other)) == 2


class TestAgain:
    def test_a_duplicate_detection_changes_nothing(self, intake: Intake, project: ProjectItem, now):
        intake.take(detection(project))
        before = table_dump()
        now.advance(60)
        intake.take(detection(project), detection(project))
        assert table_dump() == before

    def test_the_latest_observation_wins_in_any_order(self, intake: Intake, company: Company, project: ProjectItem):
        for number, order in enumerate(permutations(range(3))):
            vendor = f"vendor{number}"
            seen = [
                detection(project, vendorId=vendor, name=f"Name {at}", observedAt=f"2026-03-04T05:00:0{at}Z")
                for at in range(3)
            ]
            intake.take(*(seen[at] for at in order))
            (found,) = [entry for entry in vendors_of(project) if entry["vendorId"] == vendor]
            assert (found["name"], found["lastSeenAt"]) == ("Name 2", "2026-03-04T05:00:02.000Z")
        assert len(items_of(company)) == 6
        assert {item["runtimeVendor"]["name"] for item in items_of(company)} == {"Name 2"}

    def test_timestamps_with_offsets_and_fractions_are_compared_as_times(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        intake.take(detection(project, name="Later", observedAt="2026-03-04T06:00:00.5+01:00"))
        intake.take(detection(project, name="Earlier", observedAt="2026-03-04T05:00:00.4999Z"))
        assert items_of(company)[0]["runtimeVendor"]["name"] == "Later"

    @pytest.mark.parametrize("status", ["accepted", "dismissed"])
    def test_decisions_on_the_finding_are_kept(
        self, intake: Intake, company: Company, project: ProjectItem, status: Any, now
    ):
        intake.take(detection(project))
        item = InboxItem.from_item(items_of(company)[0])
        inbox.change_status(item, status, item.version, company.owner.user_id, None)
        now.advance(60)
        intake.take(detection(project, observedAt="2026-03-04T05:07:00Z"))
        assert [entry["status"] for entry in items_of(company)] == [status]

    def test_a_resolved_finding_reopens_if_the_vendor_is_seen_later(
        self, intake: Intake, company: Company, project: ProjectItem, now
    ):
        intake.take(detection(project))
        item = InboxItem.from_item(items_of(company)[0])
        inbox.change_status(item, "resolved", item.version, company.owner.user_id, None)
        intake.take(detection(project, observedAt="2026-03-04T05:06:00Z"))
        assert items_of(company)[0]["status"] == "resolved"
        now.advance(60)
        intake.take(detection(project, observedAt="2026-03-04T05:07:00Z"))
        assert items_of(company)[0]["status"] == "open"


class TestEvidence:
    """Detections 0 to 2 each see a page of their own, and detection 3 none."""

    SEEN = (["https://a.test/0"], ["https://a.test/1"], ["https://a.test/2"], [])

    def message(self, project: ProjectItem, at: int, **fields: Any) -> dict[str, Any]:
        fields = {"seenOn": self.SEEN[at], "name": f"Name {at}", **fields}
        return detection(project, observedAt=f"2026-03-04T05:00:0{at}Z", **fields)

    def test_evidence_is_the_same_in_any_order_of_messages(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        for number, order in enumerate(permutations(range(4))):
            vendor_id = f"vendor{number}"
            intake.take(*(self.message(project, at, vendorId=vendor_id) for at in order))
            (vendor,) = [entry for entry in vendors_of(project) if entry["vendorId"] == vendor_id]
            (item,) = [entry for entry in items_of(company) if entry["itemId"] == vendor["inboxItemId"]]
            urls = ["https://a.test/2", "https://a.test/1", "https://a.test/0"]
            assert [piece["url"] for piece in item["evidence"]] == urls
            assert [piece["url"] for piece in vendor["evidence"]] == urls
            assert (vendor["name"], item["title"]) == ("Name 3", "New vendor: Name 3")
            seen = ("2026-03-04T05:00:00.000Z", "2026-03-04T05:00:03.000Z")
            assert (vendor["firstSeenAt"], vendor["lastSeenAt"]) == seen

    def test_a_page_that_is_seen_again_is_listed_once_and_first(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        intake.take(*(self.message(project, at) for at in range(3)))
        intake.take(self.message(project, 3, seenOn=["https://a.test/0?visitor=ada"]))
        (item,) = items_of(company)
        assert [piece["url"][-1] for piece in item["evidence"]] == ["0", "2", "1"]

    def test_only_the_newest_twenty_pages_are_kept(self, intake: Intake, company: Company, project: ProjectItem):
        pages = [f"https://a.test/{number}" for number in range(20)]
        intake.take(self.message(project, 1, seenOn=pages), self.message(project, 2, seenOn=["https://b.test/"]))
        intake.take(self.message(project, 0, seenOn=["https://too-old.test/"]))
        (vendor,), (item,) = vendors_of(project), items_of(company)
        assert [piece["url"] for piece in item["evidence"]] == ["https://b.test/", *pages[:19]]
        assert len(vendor["evidence"]) == 20

    def test_a_late_detection_adds_its_evidence_and_nothing_else(
        self, intake: Intake, company: Company, project: ProjectItem, now
    ):
        intake.take(self.message(project, 2, category="analytics", domain="new.test"))
        (vendor,), (item,) = vendors_of(project), items_of(company)
        now.advance(60)
        intake.take(self.message(project, 1, beforeConsent=True, domain="old.test"))
        (later_vendor,), (later_item,) = vendors_of(project), items_of(company)
        assert [piece["url"][-1] for piece in later_item.pop("evidence")] == ["2", "1"]
        assert later_item == {name: value for name, value in item.items() if name != "evidence"}
        changed = {name for name in vendor if vendor[name] != later_vendor[name]}
        assert changed == {"evidence", "firstSeenAt", "revision"}

    def test_a_late_detection_without_pages_only_moves_the_first_time_it_was_seen(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        intake.take(self.message(project, 2))
        before = items_of(company)
        intake.take(self.message(project, 1, seenOn=[]))
        assert items_of(company) == before
        assert vendors_of(project)[0]["firstSeenAt"] == "2026-03-04T05:00:01.000Z"

    def test_duplicates_of_any_detection_change_nothing(self, intake: Intake, project: ProjectItem, now):
        messages = [self.message(project, at) for at in (1, 0, 2)]
        intake.take(*messages)
        before = table_dump()
        now.advance(60)
        intake.take(*messages, *reversed(messages))
        assert table_dump() == before

    def test_evidence_outlives_a_resolved_finding_that_expires(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        intake.take(self.message(project, 1))
        vendors.decide_vendor(project, "segment", "approved", company.owner.user_id)
        (item,) = items_of(company)
        table.delete(Delete(keys.Key(item["pk"], item["sk"])), PREPARED)
        intake.take(self.message(project, 2))
        (again,) = items_of(company)
        assert (again["status"], [piece["url"][-1] for piece in again["evidence"]]) == ("resolved", ["2", "1"])


class TestDecision:
    @pytest.mark.parametrize(("state", "review"), [("approved", "accepted"), ("ignored", "rejected")])
    def test_a_decision_before_the_first_detection_is_kept_and_opens_nothing(
        self, intake: Intake, company: Company, project: ProjectItem, state: Any, review: str
    ):
        vendors.decide_vendor(project, "segment", state, company.owner.user_id)
        intake.take(detection(project, category="analytics"))
        (vendor,), (item,) = vendors_of(project), items_of(company)
        assert (vendor["state"], vendor["reviewState"], vendor["name"]) == (state, review, "Segment")
        assert item["status"] == "resolved"

    def test_a_decision_on_a_finding_survives_later_detections(
        self, intake: Intake, company: Company, project: ProjectItem, now
    ):
        intake.take(detection(project))
        found = vendors.decide_vendor(project, "segment", "ignored", company.owner.user_id)
        now.advance(3600)
        intake.take(detection(project, observedAt="2026-03-04T06:00:00Z", beforeConsent=True))
        (vendor,), (item,) = vendors_of(project), items_of(company)
        assert (vendor["state"], vendor["lastSeenAt"]) == ("ignored", "2026-03-04T06:00:00.000Z")
        assert (item["itemId"], item["status"]) == (found, "resolved")

    def test_a_decision_between_read_and_write_is_kept(self, intake: Intake, company: Company, project: ProjectItem):
        from tests.support.calls import intercepted

        decided = []

        def before_the_transaction(call, proceed):
            if call.operation == "TransactWriteItems" and not decided:
                decided.append(True)
                vendors.decide_vendor(project, "segment", "approved", company.owner.user_id)
            return proceed()

        with intercepted(table.client, before_the_transaction):
            intake.take(detection(project))
        (vendor,), (item,) = vendors_of(project), items_of(company)
        assert (vendor["state"], vendor["inboxItemId"], item["status"]) == ("approved", item["itemId"], "resolved")


class TestDropped:
    def test_a_detection_for_a_deleted_project_is_dropped_without_a_trace(self, intake: Intake, project: ProjectItem):
        projects.delete_project(project)
        before = table_dump()
        intake.take(detection(project))
        assert table_dump() == before
        assert (intake.waiting, intake.dead) == (0, [])


class TestCrash:
    @pytest.mark.parametrize("applied", [True, False])
    def test_a_crash_leaves_nothing_half_written(
        self, intake: Intake, company: Company, project: ProjectItem, applied: bool, now
    ):
        intake.send(detection(project))
        with dies_at("TransactWriteItems", applied=applied):
            intake.work()
        assert len(vendors_of(project)) == len(items_of(company)) == applied
        assert intake.waiting == 1
        now.advance(180)
        intake.work()
        assert len(vendors_of(project)) == len(items_of(company)) == 1
        assert intake.waiting == 0

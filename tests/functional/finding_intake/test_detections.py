"""Runtime vendor detections: one vendor and one finding each, despite duplicate or out-of-order deliveries."""

from itertools import permutations
from typing import Any

import pytest

from controlplane.findings import vendors
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from controlplane.projects import store as projects
from tests.functional.finding_intake.conftest import pages
from tests.functional.projects.builders import make_project
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import table_dump


def decide_vendor(intake, state: Any) -> Any:
    return vendors.decide_vendor(intake.project, "segment", state, intake.company.owner.user_id)


class TestFirst:
    def test_the_first_detection_creates_vendor_and_finding_that_refer_to_each_other(self, intake, api):
        intake.detect(
            category="analytics", seenOn=["https://shop.example.com/a?user=ada#top", "http://localhost:5173/b"]
        )
        project_id, at = intake.project.project_id, "2026-03-04T05:00:00.000Z"
        # The part after the path may contain personal data.
        urls = ["https://shop.example.com/a", "http://localhost:5173/b"]
        assert intake.vendor == {
            "pk": intake.vendor["pk"],
            "sk": intake.vendor["sk"],
            "vendorId": "segment",
            "projectId": project_id,
            "name": "Segment",
            "domain": "cdn.segment.com",
            "category": "analytics",
            "reviewState": "suggested",
            "inboxItemId": intake.item["itemId"],
            "firstSeenAt": at,
            "lastSeenAt": at,
            "beforeConsent": False,
            "evidence": [
                {"description": "A page that loads cdn.segment.com", "url": url, "seenAt": at} for url in urls
            ],
            "revision": 1,
        }
        vendor = {"projectId": project_id, "vendorId": "segment", "name": "Segment", "domain": "cdn.segment.com"}
        made = {
            "source": "runtime",
            "status": "open",
            "priority": "P2",
            "title": "New vendor: Segment",
            "projectId": project_id,
            "runtimeVendor": vendor,
        }
        assert {name: intake.item[name] for name in made} == made
        assert (pages(intake.item), intake.letters) == (urls, (0, []))
        (listed,) = api.get("/v1/inbox", intake.company.owner.token).data
        shown = api.get(f"/v1/inbox/{listed['id']}", intake.company.owner.token).data
        assert (shown["source"], shown["status"], shown["runtimeVendor"]["vendorId"]) == ("runtime", "open", "segment")

    def test_a_vendor_needs_review_until_it_is_recognized_and_is_more_urgent_before_consent(self, intake):
        intake.detect()
        assert intake.vendor["reviewState"] == "needs_review"
        intake.detect(category="analytics", observedAt="2026-03-04T05:01:00Z")
        assert intake.vendor["reviewState"] == "suggested"
        intake.detect(beforeConsent=True, observedAt="2026-03-04T05:02:00Z")
        assert (intake.item["priority"], intake.item["title"]) == ("P1", "Segment loads before consent")

    def test_each_vendor_of_each_project_has_its_own_finding(self, intake):
        other = make_project(intake.company, "Other").project_id
        for of in (intake.project.project_id, other):
            intake.take(*(intake.detection(projectId=of, vendorId=vendor) for vendor in ("segment", "hotjar")))
        assert (len(intake.items), len(intake.vendors)) == (4, 2)


class TestAgain:
    def test_timestamps_with_offsets_and_fractions_are_compared_as_times(self, intake):
        intake.detect(name="Later", observedAt="2026-03-04T06:00:00.5+01:00")
        intake.detect(name="Earlier", observedAt="2026-03-04T05:00:00.4999Z")
        assert intake.item["runtimeVendor"]["name"] == "Later"

    @pytest.mark.parametrize(
        ("status", "after"), [("accepted", "accepted"), ("dismissed", "dismissed"), ("resolved", "open")]
    )
    def test_decisions_are_kept_and_a_resolved_finding_reopens_if_the_vendor_is_seen_later(
        self, intake, status, after, now
    ):
        intake.detect()
        intake.decide(status)
        intake.detect(observedAt="2026-03-04T05:06:00Z")
        assert intake.item["status"] == status
        now.advance(60)
        intake.detect(observedAt="2026-03-04T05:07:00Z")
        assert intake.item["status"] == after


class TestEvidence:
    """Detections 0 to 2 each see a page of their own, and detection 3 none."""

    @pytest.fixture
    def seen(self, intake):
        def message(at: int, **fields: Any) -> dict[str, Any]:
            page = {"seenOn": [f"https://a.test/{at}"] if at < 3 else [], "name": f"Name {at}"}
            return intake.detection(observedAt=f"2026-03-04T05:00:0{at}Z", **{**page, **fields})

        return message

    def test_evidence_is_the_same_in_any_order_of_messages(self, intake, seen):
        for number, order in enumerate(permutations(range(4))):
            vendor_id = f"vendor{number}"
            intake.take(*(seen(at, vendorId=vendor_id) for at in order))
            (vendor,) = [entry for entry in intake.vendors if entry["vendorId"] == vendor_id]
            (item,) = [entry for entry in intake.items if entry["itemId"] == vendor["inboxItemId"]]
            urls = ["https://a.test/2", "https://a.test/1", "https://a.test/0"]
            assert pages(item) == pages(vendor) == urls
            assert (vendor["name"], item["title"]) == ("Name 3", "New vendor: Name 3")
            times = (vendor["firstSeenAt"], vendor["lastSeenAt"])
            assert times == ("2026-03-04T05:00:00.000Z", "2026-03-04T05:00:03.000Z")

    def test_a_page_that_is_seen_again_is_listed_once_and_first(self, intake, seen):
        intake.take(*(seen(at) for at in range(3)), seen(3, seenOn=["https://a.test/0?visitor=ada"]))
        assert [url[-1] for url in pages(intake.item)] == ["0", "2", "1"]

    def test_only_the_newest_twenty_pages_are_kept(self, intake, seen):
        twenty = [f"https://a.test/{number}" for number in range(20)]
        for at, found in ((1, twenty), (2, ["https://b.test/"]), (0, ["https://too-old.test/"])):
            intake.take(seen(at, seenOn=found))
        assert pages(intake.item) == ["https://b.test/", *twenty[:19]]
        assert len(intake.vendor["evidence"]) == 20

    def test_a_late_detection_adds_its_evidence_and_nothing_else(self, intake, seen, now):
        intake.take(seen(2, category="analytics", domain="new.test"))
        vendor, item = intake.vendor, intake.item
        now.advance(60)
        intake.take(seen(1, beforeConsent=True, domain="old.test"))
        assert [url[-1] for url in pages(intake.item)] == ["2", "1"]
        assert {**intake.item, "evidence": None} == {**item, "evidence": None}
        changed = {name for name in vendor if vendor[name] != intake.vendor[name]}
        assert changed == {"evidence", "firstSeenAt", "revision"}
        before = intake.items
        intake.take(seen(0, seenOn=[]))
        assert (intake.items, intake.vendor["firstSeenAt"]) == (before, "2026-03-04T05:00:00.000Z")

    def test_duplicates_of_any_detection_change_nothing(self, intake, seen, now):
        messages = [intake.detection(vendorId="other"), *(seen(at) for at in (1, 0, 2))]
        intake.take(*messages)
        before = table_dump()
        now.advance(60)
        intake.take(*messages, *reversed(messages))
        assert table_dump() == before

    def test_evidence_outlives_a_resolved_finding_that_expires(self, intake, seen):
        intake.take(seen(1))
        decide_vendor(intake, "approved")
        table.delete(Delete(keys.Key(intake.item["pk"], intake.item["sk"])), PREPARED)
        intake.take(seen(2))
        assert (intake.item["status"], [url[-1] for url in pages(intake.item)]) == ("resolved", ["2", "1"])


class TestDecision:
    @each(("state", "review"), [("approved", "accepted"), ("ignored", "rejected")])
    def test_a_decision_before_the_first_detection_is_kept_and_opens_nothing(self, intake, world, state, review):
        intake.company = world.company()
        intake.project = make_project(intake.company)
        decide_vendor(intake, state)
        intake.detect(category="analytics")
        vendor = intake.vendor
        assert (vendor["state"], vendor["reviewState"], vendor["name"]) == (state, review, "Segment")
        assert intake.item["status"] == "resolved"

    def test_a_decision_on_a_finding_survives_later_detections(self, intake, now):
        intake.detect()
        found = decide_vendor(intake, "ignored")
        now.advance(3600)
        intake.detect(observedAt="2026-03-04T06:00:00Z", beforeConsent=True)
        assert (intake.vendor["state"], intake.vendor["lastSeenAt"]) == ("ignored", "2026-03-04T06:00:00.000Z")
        assert (intake.item["itemId"], intake.item["status"]) == (found, "resolved")

    def test_an_approved_vendor_must_still_wait_for_consent(self, intake, now):
        intake.detect(beforeConsent=True)
        assert "even if it is approved" in intake.item["summary"]
        decide_vendor(intake, "approved")
        statuses = [intake.item["status"]]
        for minute, before_consent in enumerate((False, True, False)):
            now.advance(3600)
            intake.detect(observedAt=f"2026-03-04T{6 + minute:02d}:00:00Z", beforeConsent=before_consent)
            statuses.append(intake.item["status"])
        # Another page, or a returning visitor, doesn't show that the vendor waits now.
        assert statuses == ["resolved", "resolved", "open", "open"]
        assert (intake.item["title"], intake.item["priority"]) == ("Segment loads before consent", "P1")
        decide_vendor(intake, "approved")
        assert intake.item["status"] == "resolved"
        decide_vendor(intake, "ignored")
        intake.detect(observedAt="2026-03-04T09:00:00Z", beforeConsent=True)
        assert (intake.item["status"], intake.vendor["state"]) == ("resolved", "ignored")


def test_a_detection_for_a_deleted_project_is_dropped_without_a_trace(intake):
    projects.delete_project(intake.project)
    before = table_dump()
    intake.detect()
    assert (table_dump(), intake.letters) == (before, (0, []))

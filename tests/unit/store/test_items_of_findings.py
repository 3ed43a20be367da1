"""Findings and vendors are readable, and evidence is merged regardless of order and repetition."""

from itertools import permutations
from typing import Any

from controlplane.findings.discoveries import merge_evidence
from controlplane.findings.items import Evidence, InboxItem, RuntimeVendor, StatusChange, VendorDecision
from controlplane.findings.vendors import VendorItem
from controlplane.platform.table.stored import read_map

_ORGANIZATION, _LOCAL = "3f8k2m9q7r1s5t6v", "01kb2m3n4p5q6r7s8t"
_PROJECT_ID = f"prj_{_ORGANIZATION}{_LOCAL}"

LISTED: dict[str, Any] = {
    "itemId": f"inb_{_ORGANIZATION}{_LOCAL}",
    "title": "New vendor: Segment",
    "summary": None,
    "priority": "P2",
    "status": "open",
    "source": "runtime",
    "projectId": _PROJECT_ID,
    "repositoryName": None,
    "updatedAt": "2026-03-05T05:06:07.000Z",
    "version": "9b1c04d2a7e35f68",
    "inboxOrder": "2026-03-05T05:06:07.000Z#01kb2m3n4p5q6r7s8t",
}
EVIDENCE: dict[str, Any] = {
    "description": "A page that loads segment.com",
    "url": "https://shop.example.com/",
}


def test_a_vendor_that_was_only_decided_on_is_readable():
    decided = {"vendorId": "segment", "projectId": _PROJECT_ID, "state": "ignored", "reviewState": "rejected"}
    vendor = VendorItem.from_item({**decided, "decidedBy": "usr_1", "decidedAt": "2026-03-04T05:06:07.000Z"})
    assert (vendor.state, vendor.runtime_vendor, vendor.inbox_item_id) == ("ignored", None, None)


def test_evidence_without_a_time_is_written_back_unchanged():
    assert read_map(Evidence, EVIDENCE).to_map() == EVIDENCE


def test_a_listed_item_has_a_vendor_if_its_position_carries_one():
    assert InboxItem.from_item(LISTED).runtime_vendor is None
    carried = {**LISTED, "inboxOrder": f"{LISTED['inboxOrder']}#segment#segment.com#Segment #1"}
    expected = RuntimeVendor(_PROJECT_ID, "segment", "Segment #1", "segment.com")
    assert InboxItem.from_item(carried).runtime_vendor == expected


def test_merged_evidence_is_the_same_in_any_order():
    pieces = [Evidence("A page", f"https://a.test/{page}", seen_at=at) for page, at in ("a1", "b2", "a3", "c0", "b2")]
    merged = merge_evidence(pieces)
    assert [(piece.url, piece.seen_at) for piece in merged] == [
        ("https://a.test/a", "3"),
        ("https://a.test/b", "2"),
        ("https://a.test/c", "0"),
    ]
    for order in permutations(pieces):
        assert merge_evidence(order) == merged
        assert merge_evidence([*merged, *order]) == merged


def test_evidence_without_a_url_is_merged_by_its_description():
    pieces = (Evidence("A", seen_at="1"), Evidence("B", seen_at="1"), Evidence("A", snippet="x", seen_at="1"))
    assert merge_evidence(pieces) == pieces[:2]


def test_an_item_has_its_decisions_its_former_statuses_and_the_path_of_its_evidence():
    at = "2026-03-04T05:06:07.000Z"
    stored = {**LISTED, "source": "code-audit", "statusAt": at, "evidence": [{**EVIDENCE, "path": "src/a.html"}]}
    statuses = [{"status": status, "at": at} for status in ("open", "accepted")]
    decision = {"vendorId": "segment", "state": "approved", "decidedAt": at}
    item = InboxItem.from_item({**stored, "history": statuses, "decisions": [decision]})
    assert [change.status for change in item.history] == ["open", "accepted", "open"]
    assert item.former == StatusChange("accepted", at)
    assert (item.decisions, item.path) == ((VendorDecision("segment", "approved", at),), "src/a.html")


def test_an_item_without_history_has_its_current_status_only():
    stored = {**LISTED, "statusAt": "2026-03-05T05:06:07.000Z", "statusBy": "usr_1", "statusReason": "a test page"}
    item = InboxItem.from_item({**stored, "status": "dismissed"})
    assert item.history == (StatusChange("dismissed", "2026-03-05T05:06:07.000Z", "usr_1", "a test page"),)
    assert item.former is None
    assert InboxItem.from_item(LISTED).history == ()


def test_a_position_carries_the_path_of_a_code_finding_or_nothing():
    code = {**LISTED, "source": "code-audit"}
    assert InboxItem.from_item(code).path is None
    path = "src/a#b#c#d.html"
    item = InboxItem.from_item({**code, "inboxOrder": f"{LISTED['inboxOrder']}#{path}"})
    assert (item.path, item.runtime_vendor) == (path, None)

"""A project's vendors: the list with a summary of their evidence, and decisions about them."""

from typing import Any
from urllib.parse import quote

import pytest

from controlplane.findings import inbox, vendors
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from tests.functional.projects.builders import add_finding, stored
from tests.functional.projects.conftest import Organization, nothing_written
from tests.support.api import Reply
from tests.support.audit_reports import receive
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.told import told


@pytest.fixture
def project(acme):
    return acme.project()


def detect(project: ProjectItem, vendor_id: str = "segment", minute: int = 0, **fields: Any) -> None:
    """Processes a message that reports the vendor, seen at 05:<minute>."""
    message = {
        "kind": "runtime-vendor-detection",
        "version": 1,
        "projectId": project.project_id,
        "vendorId": vendor_id,
        "name": "Segment",
        "domain": "segment.com",
        "observedAt": f"2026-03-04T05:{minute:02d}:00Z",
        **fields,
    }
    receive(message)


def listed(acme: Organization, project: ProjectItem, query: str = "") -> Reply:
    return acme.get(project, f"/vendors{query}")


def test_a_detected_vendor_has_these_fields(acme, project):
    assert listed(acme, project).body["pagination"] == {"nextCursor": None, "hasMore": False}
    detect(project, minute=3, category="analytics", seenOn=["https://a.test/3"], beforeConsent=True)
    detect(project, minute=1, seenOn=["https://a.test/1"])
    (item,) = acme.api.get("/v1/inbox", acme.key).data
    assert listed(acme, project).data == [
        {
            "vendorId": "segment",
            "projectId": project.project_id,
            "name": "Segment",
            "domain": "segment.com",
            "category": "analytics",
            "state": None,
            "reviewState": "suggested",
            "decidedAt": None,
            "decidedBy": None,
            "inboxItemId": item["id"],
            "evidence": {"count": 2, "pages": ["https://a.test/3", "https://a.test/1"], "beforeConsent": True},
            "firstSeenAt": "2026-03-04T05:01:00.000Z",
            "lastSeenAt": "2026-03-04T05:03:00.000Z",
            "repositories": [],
        }
    ]


def test_a_vendor_that_was_only_decided_on_has_no_fields_of_a_detection_until_it_is_detected(acme, project):
    vendors.decide_vendor(project, "segment", "ignored", acme.owner.user_id)
    (vendor,) = listed(acme, project).data
    assert vendor == {
        **dict.fromkeys(("name", "domain", "category", "inboxItemId", "firstSeenAt", "lastSeenAt")),
        "vendorId": "segment",
        "projectId": project.project_id,
        "state": "ignored",
        "reviewState": "rejected",
        "decidedAt": "2026-03-04T05:06:07.000Z",
        "decidedBy": acme.owner.user_id,
        "evidence": {"count": 0, "pages": [], "beforeConsent": False},
        "repositories": [],
    }
    for minute in range(7):
        detect(project, minute=minute, seenOn=[f"https://a.test/{minute}"], beforeConsent=minute < 6)
    (detected,) = listed(acme, project).data
    decision = ("state", "reviewState", "decidedAt", "decidedBy")
    assert [detected[name] for name in decision] == [vendor[name] for name in decision]
    pages = [f"https://a.test/{minute}" for minute in (6, 5, 4, 3, 2)]
    assert detected["evidence"] == {"count": 7, "pages": pages, "beforeConsent": False}
    assert detected["lastSeenAt"] == "2026-03-04T05:06:00.000Z"


@each("limit", [1, 2, 3, 100])
def test_pages_show_every_vendor_of_the_project_once_by_id(limit, acme, project):
    for vendor_id in ("b", "a", "c"):
        detect(project, vendor_id)
    other = acme.project(name="Other")
    for vendor_id in ("d", "e"):
        detect(other, vendor_id)
    reply = listed(acme, project, f"?limit={limit}")
    seen = [vendor["vendorId"] for vendor in reply.data]
    while cursor := reply.body["pagination"]["nextCursor"]:
        assert listed(acme, other, f"?cursor={cursor}").code == "INVALID_PAYLOAD"
        reply = listed(acme, project, f"?limit={limit}&cursor={cursor}")
        seen += [vendor["vendorId"] for vendor in reply.data]
    assert seen == ["a", "b", "c"]


@each(("decision", "state", "review_state"), [("approve", "approved", "accepted"), ("ignore", "ignored", "rejected")])
def test_a_vendor_can_be_decided_before_any_scan_finds_it(decision, state, review_state, acme):
    project, admin = acme.project(), acme.member("admin")
    reply = acme.decide(project, decision, by=admin)
    assert (reply.status, reply.data) == (
        200,
        {
            "inboxItemId": None,
            "projectId": project.project_id,
            "reviewState": review_state,
            "state": state,
            "vendorId": "segment",
        },
    )
    (vendor,) = (item for item in stored("VENDOR#") if item["projectId"]["S"] == project.project_id)
    assert (vendor["state"]["S"], vendor["reviewState"]["S"]) == (state, review_state)
    assert (vendor["decidedBy"]["S"], vendor["decidedAt"]["S"]) == (admin.user_id, "2026-03-04T05:06:07.000Z")


def test_a_decision_resolves_the_vendors_finding_which_moves_to_the_top(acme, now):
    project = acme.project()
    finding = add_finding(project, "segment")
    other = acme.world.finding(acme.company).item_id
    acme.decide(project, vendor_id="hotjar")
    now.advance(1)
    acme.get(project, by=acme.owner)
    with recorded_calls() as calls:
        assert acme.decide(project).data["inboxItemId"] == finding
    assert len(calls) == 4
    item = next(item for item in stored("INBOX#") if item["itemId"]["S"] == finding)
    assert [item[name]["S"] for name in ("status", "updatedAt", "title")] == [
        "resolved",
        "2026-03-04T05:06:08.000Z",
        "Segment loads before consent",
    ]
    assert item["version"]["S"] != "first"
    for query, listed in (("", [finding, other]), ("?status=resolved", [finding]), ("?status=open", [other])):
        assert [it["id"] for it in acme.api.get(f"/v1/inbox{query}", acme.owner.token).data] == listed


def test_a_decision_can_be_changed_and_repeated_but_resolves_its_finding_once(acme, now):
    project = acme.project()
    finding = add_finding(project, "segment")
    for vendor_id in ("a", "google-analytics_4.v2", "0", "x" * 100):
        with nothing_written():
            unknown = acme.decide(project, vendor_id=vendor_id)
        assert (unknown.status, unknown.code) == (404, "NOT_FOUND")
    for vendor_id in ("google-analytics", "hotjar"):
        with recorded_calls() as calls:
            decided = acme.decide(project, vendor_id=vendor_id).data
        assert (decided["vendorId"], decided["inboxItemId"]) == (vendor_id, None)
    assert len(calls) == 4
    assert [item["status"]["S"] for item in stored("INBOX#")] == ["open"]
    resolved = []
    for decision, state in (("approve", "approved"), ("approve", "approved"), ("ignore", "ignored")):
        now.advance(1)
        decided = acme.decide(project, decision).data
        assert (decided["state"], decided["inboxItemId"]) == (state, finding)
        resolved += stored("INBOX#")
    assert {item["state"]["S"] for item in stored("VENDOR#") if item["vendorId"]["S"] == "segment"} == {"ignored"}
    assert resolved == [resolved[0]] * 3
    assert [it for it in told(acme.company) if it[0] != "key.created"] == [("finding.resolved", [finding])]


def test_what_a_person_decided_before_stays_in_the_history(acme, now):
    project = acme.project()
    finding = add_finding(project, "segment")
    body = {"status": "dismissed", "version": "first", "reason": "Known."}
    assert acme.api.patch(f"/v1/inbox/{finding}", acme.owner.token, json_body=body).status == 200
    now.advance(1)
    acme.decide(project, "ignore")
    item = inbox.get_item(InboxItemId.stored(finding))
    assert [(it.status, it.by, it.reason) for it in item.history[-2:]] == [
        ("dismissed", acme.owner.user_id, "Known."),
        ("resolved", acme.owner.user_id, None),
    ]


def test_a_finding_added_during_the_decision_is_resolved_too(acme):
    project, made = acme.project(), []
    with before_the_transaction(table.client, lambda: made.append(add_finding(project, "segment"))):
        assert [acme.decide(project).data["inboxItemId"]] == made
    assert [item["status"]["S"] for item in stored("INBOX#")] == ["resolved"]


@each(
    ("vendor_id", "decision", "path"),
    [
        *(("segment", decision, "decision") for decision in ("approved", "APPROVE", "", None, True, [], ["approve"])),
        *((vendor_id, "approve", "vendorId") for vendor_id in ("Segment", "x" * 101, "a b", "a#b", "ségment", "a\n")),
    ],
)
def test_an_unknown_decision_or_an_invalid_vendor_id_is_rejected(vendor_id, decision, path, acme):
    project = acme.project()
    with nothing_written():
        reply = acme.decide(project, decision, quote(vendor_id))
    assert (reply.code, reply.error["details"][0]["path"]) == ("INVALID_PAYLOAD", [path])


def test_a_project_deleted_during_the_decision_gets_no_vendor(acme):
    project = acme.project()
    with before_the_transaction(table.client, lambda: projects.delete_project(project)):
        assert acme.decide(project).code == "NOT_FOUND"
    assert stored("VENDOR#") == []

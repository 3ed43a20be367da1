"""POST /v1/projects/{projectId}/vendors/{vendorId}/decision: a person approves or ignores a vendor."""

from typing import Any
from urllib.parse import quote

from controlplane.findings import inbox
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from tests.functional.conftest import FakeClock
from tests.functional.projects.builders import add_finding, stored
from tests.functional.projects.conftest import Organization, nothing_written
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.told import told


@each(("decision", "state", "review_state"), [("approve", "approved", "accepted"), ("ignore", "ignored", "rejected")])
def test_a_vendor_can_be_decided_before_any_scan_finds_it(
    decision: str, state: str, review_state: str, acme: Organization
):
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


def test_a_decision_resolves_the_vendors_finding_which_moves_to_the_top(acme: Organization, now: FakeClock):
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


def test_another_vendors_finding_stays_open_when_a_decision_is_made_and_repeated(acme: Organization):
    project = acme.project()
    add_finding(project, "segment")
    assert acme.decide(project, vendor_id="hotjar").status == 200
    with recorded_calls() as calls:
        assert acme.decide(project, "ignore", vendor_id="hotjar").data["inboxItemId"] is None
    assert len(calls) == 4
    assert [item["status"]["S"] for item in stored("INBOX#")] == ["open"]


def test_a_decision_can_be_changed_and_repeated_but_resolves_the_finding_once(acme: Organization, now: FakeClock):
    project = acme.project()
    finding = add_finding(project, "segment")
    resolved: list[Any] = []
    for decision, state in (("approve", "approved"), ("approve", "approved"), ("ignore", "ignored")):
        now.advance(1)
        decided = acme.decide(project, decision).data
        assert (decided["state"], decided["inboxItemId"]) == (state, finding)
        resolved += stored("INBOX#")
    assert [item["state"]["S"] for item in stored("VENDOR#")] == ["ignored"]
    assert resolved == [resolved[0]] * 3
    assert [it for it in told(acme.company) if it[0] != "key.created"] == [("finding.resolved", [finding])]


def test_what_a_person_decided_before_stays_in_the_history(acme: Organization, now: FakeClock):
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


def test_a_finding_added_during_the_decision_is_resolved_too(acme: Organization):
    project, made = acme.project(), []
    with before_the_transaction(table.client, lambda: made.append(add_finding(project, "segment"))):
        assert [acme.decide(project).data["inboxItemId"]] == made
    assert [item["status"]["S"] for item in stored("INBOX#")] == ["resolved"]


@each("vendor_id", ["a", "google-analytics_4.v2", "0", "x" * 100])
def test_valid_vendor_ids_are_accepted(vendor_id: str, acme: Organization):
    assert acme.decide(acme.project(), vendor_id=vendor_id).data["vendorId"] == vendor_id


@each(
    ("vendor_id", "decision", "path"),
    [
        *(("segment", decision, "decision") for decision in ("approved", "APPROVE", "", None, True, [], ["approve"])),
        *((vendor_id, "approve", "vendorId") for vendor_id in ("Segment", "x" * 101, "a b", "a#b", "ségment", "a\n")),
    ],
)
def test_an_unknown_decision_or_an_invalid_vendor_id_is_rejected(
    vendor_id: str, decision: Any, path: str, acme: Organization
):
    project = acme.project()
    with nothing_written():
        reply = acme.decide(project, decision, quote(vendor_id))
    assert (reply.code, reply.error["details"][0]["path"]) == ("INVALID_PAYLOAD", [path])


def test_a_project_deleted_during_the_decision_gets_no_vendor(acme: Organization):
    project = acme.project()
    with before_the_transaction(table.client, lambda: projects.delete_project(project)):
        assert acme.decide(project).code == "NOT_FOUND"
    assert stored("VENDOR#") == []

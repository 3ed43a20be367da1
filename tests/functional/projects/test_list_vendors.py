"""GET /v1/projects/{projectId}/vendors: detected and decided vendors, with a summary of their evidence."""

import json
from typing import Any

import pytest

from controlplane.findings import vendors
from controlplane.findings.intake import ACCEPTED
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from finding_intake.service import process_finding
from tests.functional.projects.conftest import Organization
from tests.support.api import Api, Reply
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.world import World


@pytest.fixture
def project(acme: Organization) -> ProjectItem:
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
    process_finding(ACCEPTED.validate_json(json.dumps(message)))


def listed(acme: Organization, project: ProjectItem, query: str = "") -> Reply:
    return acme.get(project, f"/vendors{query}")


def test_a_detected_vendor_has_these_fields(acme: Organization, project: ProjectItem):
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
        }
    ]


def test_a_vendor_that_was_only_decided_on_has_no_fields_of_a_detection(acme: Organization, project: ProjectItem):
    vendors.decide_vendor(project, "hotjar", "ignored", acme.owner.user_id)
    (vendor,) = listed(acme, project).data
    assert vendor == {
        **dict.fromkeys(("name", "domain", "category", "inboxItemId", "firstSeenAt", "lastSeenAt")),
        "vendorId": "hotjar",
        "projectId": project.project_id,
        "state": "ignored",
        "reviewState": "rejected",
        "decidedAt": "2026-03-04T05:06:07.000Z",
        "decidedBy": acme.owner.user_id,
        "evidence": {"count": 0, "pages": [], "beforeConsent": False},
    }


def test_a_decision_shows_along_with_the_detections(acme: Organization, project: ProjectItem):
    detect(project, minute=1)
    vendors.decide_vendor(project, "segment", "approved", acme.owner.user_id)
    detect(project, minute=2, seenOn=["https://a.test/"])
    (vendor,) = listed(acme, project).data
    names = ("state", "reviewState", "decidedBy", "lastSeenAt")
    assert [vendor[name] for name in names] == [
        "approved",
        "accepted",
        acme.owner.user_id,
        "2026-03-04T05:02:00.000Z",
    ]
    assert vendor["evidence"]["count"] == 1


def test_the_summary_has_the_five_newest_pages(acme: Organization, project: ProjectItem):
    for minute in range(7):
        detect(project, minute=minute, seenOn=[f"https://a.test/{minute}"], beforeConsent=minute < 6)
    (vendor,) = listed(acme, project).data
    pages = [f"https://a.test/{minute}" for minute in (6, 5, 4, 3, 2)]
    assert vendor["evidence"] == {"count": 7, "pages": pages, "beforeConsent": False}


@each("limit", [1, 2, 3, 100])
def test_pages_show_every_vendor_of_the_project_once_by_id(limit: int, acme: Organization, project: ProjectItem):
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


def test_another_organization_learns_nothing(acme: Organization, project: ProjectItem, api: Api, world: World):
    detect(project)
    stranger = Organization(api, world)
    with recorded_calls() as calls:
        by_key = listed(stranger, project)
    assert not any(acme.id in str(call.parameters) for call in calls)
    by_person = stranger.get(project, "/vendors?cursor=x", by=stranger.owner)
    projects.delete_project(project)
    deleted = listed(acme, project)
    assert (deleted.status, {by_key.text, by_person.text}) == (404, {deleted.text})

"""GET /v1/projects/{projectId}/vendors: detected and decided vendors, with a summary of their evidence."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from controlplane.store import projects, vendors
from controlplane.store.project_items import ProjectItem
from finding_intake.messages import ACCEPTED
from finding_intake.service import process_finding
from tests.functional.projects.builders import make_project
from tests.support.api import Api, Reply
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.world import Company, World


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def project(company: Company) -> ProjectItem:
    return make_project(company)


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


def read(api: Api, token: str, project: ProjectItem, query: str = "") -> Reply:
    return api.get(f"/v1/projects/{project.project_id}/vendors{query}", token)


class Test200:
    def test_a_detected_vendor_has_these_fields(self, api: Api, company: Company, project: ProjectItem):
        detect(project, minute=3, category="analytics", seenOn=["https://a.test/3"], beforeConsent=True)
        detect(project, minute=1, seenOn=["https://a.test/1"])
        (vendor,) = read(api, company.owner.token, project).data
        (item,) = api.get("/v1/inbox", company.owner.token).data
        assert vendor == {
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

    def test_a_vendor_that_was_only_decided_on_has_no_fields_of_a_detection(
        self, api: Api, company: Company, project: ProjectItem
    ):
        vendors.decide_vendor(project, "hotjar", "ignored", company.owner.user_id)
        (vendor,) = read(api, company.owner.token, project).data
        assert vendor == {
            "vendorId": "hotjar",
            "projectId": project.project_id,
            "name": None,
            "domain": None,
            "category": None,
            "state": "ignored",
            "reviewState": "rejected",
            "decidedAt": "2026-03-04T05:06:07.000Z",
            "decidedBy": company.owner.user_id,
            "inboxItemId": None,
            "evidence": {"count": 0, "pages": [], "beforeConsent": False},
            "firstSeenAt": None,
            "lastSeenAt": None,
        }

    def test_a_decision_shows_along_with_the_detections(self, api: Api, company: Company, project: ProjectItem):
        detect(project, minute=1)
        vendors.decide_vendor(project, "segment", "approved", company.owner.user_id)
        detect(project, minute=2, seenOn=["https://a.test/"])
        (vendor,) = read(api, company.owner.token, project).data
        assert (vendor["state"], vendor["reviewState"]) == ("approved", "accepted")
        assert vendor["decidedBy"] == company.owner.user_id
        assert (vendor["evidence"]["count"], vendor["lastSeenAt"]) == (1, "2026-03-04T05:02:00.000Z")

    def test_the_summary_has_the_five_newest_pages(self, api: Api, company: Company, project: ProjectItem):
        for minute in range(7):
            detect(project, minute=minute, seenOn=[f"https://a.test/{minute}"], beforeConsent=minute < 6)
        (vendor,) = read(api, company.owner.token, project).data
        pages = [f"https://a.test/{minute}" for minute in (6, 5, 4, 3, 2)]
        assert vendor["evidence"] == {"count": 7, "pages": pages, "beforeConsent": False}

    def test_only_the_projects_own_vendors_are_listed_by_id(self, api: Api, company: Company, project: ProjectItem):
        for of, vendor_id in ((project, "b"), (project, "a"), (make_project(company, "Other"), "c")):
            detect(of, vendor_id)
        assert [vendor["vendorId"] for vendor in read(api, company.owner.token, project).data] == ["a", "b"]

    @each("limit", [1, 2, 3, 100])
    def test_pages_show_every_vendor_once(self, limit: int, api: Api, company: Company, project: ProjectItem):
        names = [f"vendor{number}" for number in range(5)]
        for vendor_id in names:
            detect(project, vendor_id)
        seen, cursor = [], ""
        while True:
            reply = read(api, company.owner.token, project, f"?limit={limit}{cursor}")
            seen += [vendor["vendorId"] for vendor in reply.data]
            if not reply.body["pagination"]["hasMore"]:
                break
            cursor = "&cursor=" + quote(reply.body["pagination"]["nextCursor"])
        assert seen == names

    def test_a_member_and_an_api_key_may_list_vendors(
        self, api: Api, world: World, company: Company, project: ProjectItem
    ):
        detect(project)
        for token in (world.member(company).token, world.key(company)):
            assert len(read(api, token, project).data) == 1

    def test_a_project_without_vendors_has_an_empty_list(self, api: Api, company: Company, project: ProjectItem):
        reply = read(api, company.owner.token, project)
        assert (reply.data, reply.body["pagination"]) == ([], {"nextCursor": None, "hasMore": False})


class Test400:
    def test_a_cursor_of_another_project_is_rejected(self, api: Api, company: Company, project: ProjectItem):
        other = make_project(company, "Other")
        for of in (project, other):
            for vendor_id in ("a", "b"):
                detect(of, vendor_id)
        cursor = quote(read(api, company.owner.token, project, "?limit=1").body["pagination"]["nextCursor"])
        assert read(api, company.owner.token, project, f"?cursor={cursor}").status == 200
        assert read(api, company.owner.token, other, f"?cursor={cursor}").code == "INVALID_PAYLOAD"


class Test403:
    def test_returns_403_without_the_scope(self, api: Api, world: World, company: Company, project: ProjectItem):
        reply = read(api, world.token(company.owner.user_id, ["projects.read"]), project)
        assert (reply.code, reply.error["details"]) == ("INSUFFICIENT_SCOPE", {"requiredScope": "inbox.read"})


class Test404:
    def test_another_organizations_project_and_a_deleted_one_look_alike(
        self, api: Api, world: World, company: Company, project: ProjectItem
    ):
        detect(project)
        foreign = read(api, world.company().owner.token, project)
        projects.delete_project(project)
        deleted = read(api, company.owner.token, project)
        assert (foreign.status, foreign.text) == (deleted.status, deleted.text) == (404, deleted.text)

    def test_an_api_key_has_nothing_of_another_organization_read(
        self, api: Api, world: World, company: Company, project: ProjectItem
    ):
        detect(project)
        key = world.key(world.company())
        with recorded_calls() as calls:
            assert read(api, key, project).code == "NOT_FOUND"
        assert not any(company.organization_id in str(call.parameters) for call in calls)

    def test_a_caller_who_is_refused_is_told_nothing_of_the_cursor(self, api: Api, world: World, project: ProjectItem):
        assert read(api, world.company().owner.token, project, "?cursor=x").code == "NOT_FOUND"

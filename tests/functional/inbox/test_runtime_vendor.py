"""`runtimeVendor` in every response that returns a runtime finding."""

from typing import Any
from urllib.parse import quote

import pytest

from controlplane.store import detections
from controlplane.store.inbox_items import RuntimeVendor
from controlplane.store.project_items import ProjectItem
from controlplane.store.table import table
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.calls import intercepted
from tests.support.populated_organization import detection
from tests.support.world import Company, World

LATER = "2026-03-04T05:07:00.000Z"


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def project(company: Company) -> ProjectItem:
    return make_project(company)


def detect(project: ProjectItem, vendor_id: str = "segment", **changes: Any) -> dict[str, str]:
    """Records a detection. Returns the vendor as responses show it."""
    vendor = RuntimeVendor(
        project.project_id, vendor_id, changes.pop("name", "Segment"), changes.pop("domain", "segment.com")
    )
    found = detection(project.project_id, vendor_id)
    values = {name: getattr(found, name) for name in found.__slots__}
    detections.record_detection(detections.Detection(**values | {"vendor": vendor} | changes))
    return vendor.to_item()


def listed(api: Api, company: Company, query: str = "") -> list[dict[str, Any]]:
    reply = api.get(f"/v1/inbox?organizationId={company.organization_id}{query}", company.owner.token)
    assert reply.status == 200
    items: list[dict[str, Any]] = reply.data
    return items


def walk(api: Api, company: Company, query: str) -> list[str]:
    """Returns the vendor ids of all pages in order."""
    found: list[str] = []
    cursor = ""
    while True:
        path = f"/v1/inbox?organizationId={company.organization_id}{query}{cursor}"
        reply = api.get(path, company.owner.token)
        found += [item["runtimeVendor"]["vendorId"] for item in reply.data]
        if not reply.body["pagination"]["hasMore"]:
            return found
        cursor = "&cursor=" + quote(reply.body["pagination"]["nextCursor"])


class Calls:
    """Counts the calls by operation while the context is active."""

    def __init__(self) -> None:
        self.operations: list[str] = []
        self._context = intercepted(table.client, self._note)

    def _note(self, call: Any, proceed: Any) -> Any:
        self.operations.append(call.operation)
        return proceed()

    def __enter__(self) -> list[str]:
        self._context.__enter__()
        return self.operations

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(*error)


class TestEveryResponse:
    def test_lists_and_the_item_have_the_same_vendor(self, api: Api, company: Company, project: ProjectItem):
        vendor = detect(project)
        for query in ("", "&status=open"):
            (item,) = listed(api, company, query)
            assert item["runtimeVendor"] == vendor
        assert api.get(f"/v1/inbox/{item['id']}", company.owner.token).data["runtimeVendor"] == vendor

    def test_a_changed_item_has_its_vendor_in_the_response_and_in_lists(
        self, api: Api, company: Company, project: ProjectItem, now
    ):
        vendor = detect(project)
        (item,) = listed(api, company)
        now.advance(1)
        body = {"status": "accepted", "version": item["version"]}
        changed = api.patch(f"/v1/inbox/{item['id']}", company.owner.token, json_body=body)
        assert changed.data["runtimeVendor"] == vendor
        assert listed(api, company, "&status=accepted") == [changed.data]

    def test_a_finding_that_a_decision_resolved_is_listed_with_its_vendor(
        self, api: Api, company: Company, project: ProjectItem
    ):
        vendor = detect(project)
        path = f"/v1/projects/{project.project_id}/vendors/segment/decision"
        api.post(path, company.owner.token, json_body={"decision": "approve"})
        with Calls() as calls:
            (item,) = listed(api, company, "&status=resolved")
        assert (item["runtimeVendor"], "BatchGetItem" in calls) == (vendor, False)

    @pytest.mark.parametrize("change", [{"name": "Twilio Segment"}, {"domain": "cdn.segment.com"}])
    def test_a_vendor_that_changed_is_listed_as_it_is_now(
        self, change: dict[str, str], api: Api, company: Company, project: ProjectItem
    ):
        detect(project)
        (before,) = listed(api, company)
        vendor = detect(project, observed_at=LATER, **change)
        (item,) = listed(api, company)
        assert item["runtimeVendor"] == vendor
        assert item["version"] != before["version"]

    def test_findings_of_other_sources_have_no_vendor(self, api: Api, world: World, company: Company):
        world.finding(company, world.connected_repository(company))
        world.finding(company, source="advisory")
        assert [item["runtimeVendor"] for item in listed(api, company)] == [None, None]

    def test_a_list_takes_one_query(self, api: Api, company: Company, project: ProjectItem):
        for number in range(3):
            detect(project, f"vendor{number}")
        listed(api, company)
        with Calls() as calls:
            listed(api, company)
        assert (calls.count("Query"), calls.count("BatchGetItem")) == (1, 0)


class TestNames:
    @pytest.mark.parametrize("name", ["a#b#c", "#", "Müller & Söhne", "分析" * 100, "😀" * 200])
    def test_every_name_is_listed_unchanged_and_can_be_paged_over(
        self, name: str, api: Api, company: Company, project: ProjectItem
    ):
        domain, wide = ".".join(["x" * 62] * 4), "v" * 99
        for number in range(3):
            vendor = detect(project, f"{wide}{number}", name=name, domain=domain)
        names = [(item["runtimeVendor"]["name"], item["runtimeVendor"]["domain"]) for item in listed(api, company)]
        assert names == [(vendor["name"], domain)] * 3
        assert sorted(walk(api, company, "&limit=1")) == [f"{wide}{number}" for number in range(3)]

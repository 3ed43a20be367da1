"""`runtimeVendor` in every response that returns a runtime finding, including those of older releases."""

from typing import Any
from urllib.parse import quote

import pytest

from controlplane.store import detections, keys
from controlplane.store.inbox_items import RuntimeVendor
from controlplane.store.project_items import ProjectItem
from controlplane.store.table import table
from ops import inbox_backfill
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.calls import intercepted
from tests.support.older_detections import as_older_release_wrote_it
from tests.support.populated_organization import detection
from tests.support.world import Company, World, table_dump

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


class TestOlderItems:
    def test_items_of_an_older_release_are_listed_with_their_vendor(
        self, api: Api, company: Company, project: ProjectItem, now
    ):
        names = []
        for number in range(4):
            names.insert(0, detect(project, f"vendor{number}", name=f"Vendor {number}"))
            now.advance(1)
        as_older_release_wrote_it(project, company)
        for query in ("", "&status=open"):
            assert [item["runtimeVendor"] for item in listed(api, company, query)] == names
        assert walk(api, company, "&limit=1") == [vendor["vendorId"] for vendor in names]

    def test_a_change_adds_the_vendor_to_the_list_entry(self, api: Api, company: Company, project: ProjectItem):
        detect(project)
        as_older_release_wrote_it(project, company)
        with Calls() as calls:
            (item,) = listed(api, company)
        assert "BatchGetItem" in calls
        body = {"status": "accepted", "version": item["version"]}
        api.patch(f"/v1/inbox/{item['id']}", company.owner.token, json_body=body)
        with Calls() as calls:
            listed(api, company)
        assert "BatchGetItem" not in calls

    def test_cursors_stay_valid_while_the_backfill_runs(self, api: Api, company: Company, project: ProjectItem, now):
        for number in range(4):
            detect(project, f"vendor{number}")
            now.advance(number % 2)  # some of them at the same millisecond
        as_older_release_wrote_it(project, company)
        whole = [item["id"] for item in listed(api, company)]
        path = f"/v1/inbox?organizationId={company.organization_id}"
        first = api.get(f"{path}&limit=2", company.owner.token)
        inbox_backfill.run()
        cursor = quote(first.body["pagination"]["nextCursor"])
        second = api.get(f"{path}&limit=2&cursor={cursor}", company.owner.token)
        assert [item["id"] for item in first.data + second.data] == whole


class TestBackfill:
    def test_it_completes_older_items_and_changes_nothing_else(
        self, api: Api, company: Company, project: ProjectItem, world: World
    ):
        for number in range(3):
            detect(project, f"vendor{number}")
        world.finding(company, world.connected_repository(company))
        before = [item for item in table_dump() if item["sk"]["S"].startswith(keys.INBOX_PREFIX)]
        as_older_release_wrote_it(project, company)
        older = listed(api, company)
        assert inbox_backfill.run()["completed"] == 3
        assert [item for item in table_dump() if item["sk"]["S"].startswith(keys.INBOX_PREFIX)] == before
        with Calls() as calls:
            assert listed(api, company) == older
        assert "BatchGetItem" not in calls

    def test_it_leaves_items_that_are_complete(self, company: Company, project: ProjectItem):
        detect(project)
        before = table_dump()
        assert inbox_backfill.run() == {"completedAt": "2026-03-04T05:06:07.000Z", "read": 1, "completed": 0}
        assert [item for item in table_dump() if item["pk"]["S"] != keys.inbox_backfill().pk] == before

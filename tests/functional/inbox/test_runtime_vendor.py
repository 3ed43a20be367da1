"""`runtimeVendor` in every response that returns a runtime finding."""

import pytest

from controlplane.store import detections
from controlplane.store.inbox_items import RuntimeVendor
from tests.functional.inbox.conftest import Org
from tests.functional.projects.builders import make_project
from tests.support.each import each
from tests.support.populated_organization import detection
from tests.support.recorded import recorded_calls


@pytest.fixture
def project(org):
    return make_project(org.company)


def detect(project, vendor_id="segment", name="Segment", domain="segment.com", **changes):
    """Records a detection. Returns the vendor as responses show it."""
    vendor = RuntimeVendor(project.project_id, vendor_id, name, domain)
    found = detection(project.project_id, vendor_id)
    values = {name: getattr(found, name) for name in found.__slots__}
    detections.record_detection(detections.Detection(**values | {"vendor": vendor} | changes))
    return vendor.to_item()


def shown(org, query=""):
    """Returns the vendors of a list, and the calls that read it."""
    with recorded_calls() as calls:
        items = org.listed(query).data
    return [it["runtimeVendor"] for it in items], [
        it.operation for it in calls if it.operation in {"Query", "BatchGetItem"}
    ]


def test_the_item_the_response_to_a_change_and_lists_have_the_same_vendor(org, project, now):
    vendor = detect(project)
    (item,) = org.listed().data
    path = f"/v1/inbox/{item['id']}"
    assert org.api.get(path, org.owner.token).data["runtimeVendor"] == item["runtimeVendor"] == vendor
    now.advance(1)
    body = {"status": "accepted", "version": item["version"]}
    changed = org.api.patch(path, org.owner.token, json_body=body).data
    assert changed["runtimeVendor"] == vendor
    assert org.listed("&status=accepted").data == [changed]


def test_a_finding_that_a_decision_resolved_is_listed_with_its_vendor(org, project):
    vendor = detect(project)
    path = f"/v1/projects/{project.project_id}/vendors/segment/decision"
    org.api.post(path, org.owner.token, json_body={"decision": "approve"})
    assert shown(org, "&status=resolved") == ([vendor], ["Query"])


@each("changes", [{"name": "Twilio Segment"}, {"domain": "cdn.segment.com"}])
def test_a_vendor_that_changed_is_listed_as_it_is_now(changes, api, world):
    org = Org(api, world)
    project = make_project(org.company)
    detect(project)
    before = org.listed().data[0]
    vendor = detect(project, observed_at="2026-03-04T05:07:00.000Z", **changes)
    after = org.listed().data[0]
    assert (after["id"], after["runtimeVendor"]) == (before["id"], vendor)
    assert after["version"] != before["version"]


def test_a_list_takes_one_query_and_findings_of_other_sources_have_no_vendor(org, project, now):
    org.find(org.connect()), org.find(source="advisory")
    now.advance(1)
    vendors = [detect(project, f"vendor{number}") for number in range(3)]
    org.listed()  # starts the minute
    found, calls = shown(org)
    assert (sorted(found[:3], key=str), found[3:], calls) == (vendors, [None, None], ["Query"])


@each("name", ["a#b#c", "#", "Müller & Söhne", "分析" * 100, "😀" * 200])
def test_every_name_is_listed_unchanged_and_can_be_paged_over(name, api, world):
    org, domain, wide = Org(api, world), ".".join(["x" * 62] * 4), "v" * 99
    project = make_project(org.company)
    vendors = [detect(project, f"{wide}{number}", name, domain) for number in range(3)]
    listed = org.listed().data
    assert sorted((it["runtimeVendor"] for it in listed), key=str) == vendors
    assert org.walk("&limit=1") == [it["id"] for it in listed]

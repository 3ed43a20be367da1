"""`runtimeVendor` in every response that returns a runtime finding."""

import pytest

from controlplane.findings import intake
from controlplane.findings.items import RuntimeVendor
from tests.functional.inbox.conftest import Organization
from tests.functional.projects.builders import make_project
from tests.support.calls import recorded_calls
from tests.support.each import each
from tests.support.populated_organization import detection


@pytest.fixture
def project(acme):
    return make_project(acme.company)


def detect(project, vendor_id="segment", name="Segment", domain="segment.com", **changes):
    """Records a detection. Returns the vendor as responses show it."""
    intake.record_detection(detection(project.project_id, vendor_id, name=name, domain=domain, **changes))
    return RuntimeVendor(project.project_id, vendor_id, name, domain).to_map()


def shown(acme, query=""):
    """Returns the vendors of a list, and the calls that read it."""
    with recorded_calls() as calls:
        items = acme.listed(query).data
    return [it["runtimeVendor"] for it in items], [
        it.operation for it in calls if it.operation in {"Query", "BatchGetItem"}
    ]


def test_the_item_its_changes_and_lists_have_the_same_vendor(acme, project, now):
    vendor = detect(project)
    (item,) = acme.listed().data
    path, token = f"/v1/inbox/{item['id']}", acme.owner.token
    assert acme.api.get(path, token).data["runtimeVendor"] == item["runtimeVendor"] == vendor
    now.advance(1)
    changed = acme.api.patch(path, token, json_body={"status": "accepted", "version": item["version"]}).data
    assert changed["runtimeVendor"] == vendor
    assert acme.listed("&status=accepted").data == [changed]
    decision = f"/v1/projects/{project.project_id}/vendors/segment/decision"
    acme.api.post(decision, token, json_body={"decision": "approve"})
    assert shown(acme, "&status=resolved") == ([vendor], ["Query"])


@each("changes", [{"name": "Twilio Segment"}, {"domain": "cdn.segment.com"}])
def test_a_vendor_that_changed_is_listed_as_it_is_now(changes, api, world):
    acme = Organization(api, world)
    project = make_project(acme.company)
    detect(project)
    before = acme.listed().data[0]
    vendor = detect(project, observedAt="2026-03-04T05:07:00.000Z", **changes)
    after = acme.listed().data[0]
    assert (after["id"], after["runtimeVendor"]) == (before["id"], vendor)
    assert after["version"] != before["version"]


def test_a_list_takes_one_query_and_findings_of_other_sources_have_no_vendor(acme, project, now):
    acme.find(acme.connect()), acme.find(source="advisory")
    now.advance(1)
    vendors = [detect(project, f"vendor{number}") for number in range(3)]
    acme.listed()  # starts the minute
    found, calls = shown(acme)
    assert (sorted(found[:3], key=str), found[3:], calls) == (vendors, [None, None], ["Query"])


@each("name", ["a#b#c", "#", "Müller & Söhne", "分析" * 100, "😀" * 200])
def test_every_name_is_listed_unchanged_and_can_be_paged_over(name, api, world):
    acme, domain, wide = Organization(api, world), ".".join(["x" * 62] * 4), "v" * 99
    project = make_project(acme.company)
    vendors = [detect(project, f"{wide}{number}", name, domain) for number in range(3)]
    listed = acme.listed().data
    assert sorted((it["runtimeVendor"] for it in listed), key=str) == vendors
    assert acme.walk("&limit=1") == [it["id"] for it in listed]

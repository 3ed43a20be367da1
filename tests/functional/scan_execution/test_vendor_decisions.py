"""A finding about a vendor names the project's decision, and isn't raised as open if the project ignores the vendor."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.findings import intake, vendors
from controlplane.findings.vendors import VendorState
from controlplane.projects.store import get_project
from controlplane.scans.items import ScanItem
from tests.functional.projects.builders import make_project
from tests.functional.scan_execution.repeated_scans import BING, GA, HOTJAR, Audit, page
from tests.support.api import Api
from tests.support.populated_organization import detection
from tests.support.world import Company

A, BOTH = {"a.html": page(GA)}, {"a.html": page(GA, HOTJAR)}

type Decide = Callable[[str, VendorState], object]


@pytest.fixture
def decide(audit: Audit, company: Company) -> Decide:
    project, owner = get_project(audit.repository.links[0].project_id), company.owner.user_id
    return lambda vendor_id, state: vendors.decide_vendor(project, vendor_id, state, owner)


@pytest.fixture
def read_finding(audit: Audit, api: Api, company: Company) -> Callable[[ScanItem], tuple[Any, Any]]:
    """Returns a function that reads the item of Google Analytics, and the findings of a scan."""

    def read(scan: ScanItem) -> tuple[Any, Any]:
        item = api.get(f"/v1/inbox/{audit.item().item_id}", company.owner.token).data
        issues = api.get(f"/v1/code-audit/scans/{scan.scan_id}/issues", company.owner.token).data["issues"]
        return item, issues

    return read


@pytest.mark.parametrize(("state", "status"), [("approved", "open"), ("ignored", "resolved")])
def test_only_an_ignored_vendor_is_not_raised_and_its_findings_name_the_decision(
    state, status, decide, audit, read_finding
):
    decide("google-analytics", state)
    scan = audit.scan(BOTH)
    assert audit.statuses() == {"Google Analytics": status, "Hotjar": "open"}
    shown, issues = read_finding(scan)
    (decision,) = shown["decisions"]
    assert (decision["vendorId"], decision["state"]) == ("google-analytics", state)
    assert shown["statusReason"] == ("The project ignored Google Analytics." if state == "ignored" else None)
    assert shown["vendorIds"] == ["google-analytics"]
    named = {issue["vendor"]["id"]: (issue["status"], issue["decisions"]) for issue in issues}
    assert named == {"google-analytics": (status, [decision]), "hotjar": ("open", [])}
    audit.scan(BOTH)
    assert audit.item().status == status


def test_open_findings_are_resolved_by_the_next_scan_and_name_the_latest_decision(decide, story):
    story(A)
    decide("google-analytics", "ignored")
    item = story((A, "locked"))
    assert (story.statuses, [it.state for it in item.decisions]) == (["open", "resolved"], ["ignored"])
    decide("google-analytics", "approved")
    item = story(A)
    assert (item.status, [it.state for it in item.decisions]) == ("open", ["approved"])
    assert story({"a.html": page()}).status == "resolved"


@pytest.mark.parametrize("decided", ["dismissed", "accepted", "open"])
def test_the_decision_of_a_person_on_the_finding_is_kept(decided, decide, story):
    decide("google-analytics", "ignored")
    assert story(A).status == "resolved"
    assert story(decided, A).status == decided


def test_a_vendor_is_recognized_by_the_domain_that_the_runtime_saw(decide, audit, now):
    project_id = audit.repository.links[0].project_id
    intake.record_detection(detection(project_id, "ga4-tag", name="GA4", domain="www.google-analytics.com"))
    intake.record_detection(detection(project_id, "hotjar.com", name="hotjar.com", domain="hotjar.com"))
    decide("ga4-tag", "ignored")
    decide("hotjar.com", "ignored")
    audit.scan({"a.html": page(GA, HOTJAR, BING)})
    statuses = audit.statuses()
    assert (statuses["Google Analytics"], statuses["Hotjar"]) == ("resolved", "resolved")
    assert audit.item("Microsoft").status == "open"
    assert [decision.vendor_id for decision in audit.item("Google Analytics is").decisions] == ["ga4-tag"]
    decide("google-analytics", "ignored")
    now.advance(1)
    decide("ga4-tag", "approved")  # the last decision on what is one vendor counts
    audit.scan({"a.html": page(GA)})
    assert audit.statuses()["Google Analytics"] == "open"


def test_a_vendor_of_another_project_is_raised(story, company):
    other = make_project(company, "Other")
    vendors.decide_vendor(get_project(other.project_id), "google-analytics", "ignored", company.owner.user_id)
    assert story(A).status == "open"


def test_a_finding_about_several_vendors_is_settled_only_together_with_them(decide, story):
    files = {**BOTH, "src/consent.js": "1"}
    decide("google-analytics", "ignored")
    decide("hotjar", "approved")
    item = story(files, title="never asks")
    assert (item.status, len(item.decisions)) == ("open", 2)
    decide("hotjar", "ignored")
    item = story(files, title="never asks")
    assert item.status == "resolved"
    assert item.status_reason == "The project ignored Google Analytics, Hotjar."


def test_a_decision_does_not_excuse_personal_data(decide, audit):
    decide("google-analytics", "ignored")
    code = "const i = new Image(); i.src = `https://www.google-analytics.com/collect?email=${user.email}`;\n"
    audit.scan({"a.js": code})
    (item,) = [item for item in audit.items() if item.rule_id == "personal-data-in-tracking-address"]
    assert (item.status, item.decisions) == ("open", ())


def test_a_settled_finding_is_not_counted_among_the_locked_ones(decide, audit):
    decide("google-analytics", "ignored")
    audit.scan(A, "locked")
    assert audit.items() == []

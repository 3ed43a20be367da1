"""A finding about a vendor that the project approved or ignored isn't raised as open, and names the decision."""

from collections.abc import Callable

import pytest

from controlplane.findings import intake, vendors
from controlplane.findings.vendors import VendorState
from controlplane.projects.store import get_project
from tests.functional.projects.builders import make_project
from tests.functional.scan_execution.repeated_scans import BING, GA, HOTJAR, Audit, page
from tests.support.populated_organization import detection
from tests.support.world import Company

A, BOTH = {"a.html": page(GA)}, {"a.html": page(GA, HOTJAR)}

type Decide = Callable[[str, VendorState], object]


@pytest.fixture
def decide(audit: Audit, company: Company) -> Decide:
    project, owner = get_project(audit.repository.links[0].project_id), company.owner.user_id
    return lambda vendor_id, state: vendors.decide_vendor(project, vendor_id, state, owner)


@pytest.mark.parametrize("state", ["approved", "ignored"])
def test_a_vendor_is_not_raised_again_and_its_findings_name_the_decision(state, decide, audit, api, company):
    decide("google-analytics", state)
    scan = audit.scan(BOTH)
    assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "open"}
    shown = api.get(f"/v1/inbox/{audit.item().item_id}", company.owner.token).data
    (decision,) = shown["decisions"]
    assert (decision["vendorId"], decision["state"]) == ("google-analytics", state)
    assert shown["statusReason"] == f"The project {state} Google Analytics."
    issues = api.get(f"/v1/code-audit/scans/{scan.scan_id}/issues", company.owner.token).data["issues"]
    named = {issue["vendor"]["id"]: (issue["status"], issue["decisions"]) for issue in issues}
    assert named == {"google-analytics": ("resolved", [decision]), "hotjar": ("open", [])}
    audit.scan(BOTH)
    assert audit.item().status == "resolved"


def test_open_findings_are_resolved_by_the_next_scan_and_name_the_latest_decision(decide, story):
    story(A)
    decide("google-analytics", "approved")
    item = story((A, "locked"))
    assert (story.statuses, [it.state for it in item.decisions]) == (["open", "resolved"], ["approved"])
    decide("google-analytics", "ignored")
    item = story(A)
    assert (item.status, [it.state for it in item.decisions]) == ("resolved", ["ignored"])


@pytest.mark.parametrize("decided", ["dismissed", "accepted", "open"])
def test_the_decision_of_a_person_on_the_finding_is_kept(decided, decide, story):
    decide("google-analytics", "approved")
    assert story(A).status == "resolved"
    assert story(decided, A).status == decided


def test_a_vendor_is_recognized_by_the_domain_that_the_runtime_saw(decide, audit):
    project_id = audit.repository.links[0].project_id
    intake.record_detection(detection(project_id, "ga4-tag", name="GA4", domain="www.google-analytics.com"))
    decide("ga4-tag", "approved")
    decide("hotjar.com", "ignored")
    audit.scan({"a.html": page(GA, HOTJAR, BING)})
    statuses = audit.statuses()
    assert (statuses["Google Analytics"], statuses["Hotjar"]) == ("resolved", "resolved")
    assert audit.item("Microsoft").status == "open"
    assert [decision.vendor_id for decision in audit.item("Google Analytics is").decisions] == ["ga4-tag"]


def test_a_vendor_of_another_project_is_raised(story, company):
    other = make_project(company, "Other")
    vendors.decide_vendor(get_project(other.project_id), "google-analytics", "approved", company.owner.user_id)
    assert story(A).status == "open"


def test_a_finding_about_several_vendors_is_settled_only_together_with_them(decide, story):
    files = {**BOTH, "src/consent.js": "1"}
    decide("google-analytics", "approved")
    assert story(files, title="never asks").status == "open"
    decide("hotjar", "ignored")
    item = story(files, title="never asks")
    assert (item.status, len(item.decisions)) == ("resolved", 2)
    assert item.status_reason == "The project approved Google Analytics, ignored Hotjar."


def test_a_decision_does_not_excuse_personal_data(decide, audit):
    decide("google-analytics", "approved")
    code = "const i = new Image(); i.src = `https://www.google-analytics.com/collect?email=${user.email}`;\n"
    audit.scan({"a.js": code})
    (item,) = [item for item in audit.items() if item.rule_id == "personal-data-in-tracking-address"]
    assert (item.status, item.decisions) == ("open", ())


def test_a_settled_finding_is_not_counted_among_the_locked_ones(decide, audit):
    decide("google-analytics", "approved")
    audit.scan(A, "locked")
    assert audit.items() == []

"""A finding about a vendor that the project approved or ignored isn't raised as open, and names the decision."""

import pytest

from controlplane.findings import detections, vendors
from controlplane.findings.detections import Detection
from controlplane.findings.items import RuntimeVendor
from controlplane.findings.status_history import Status
from controlplane.projects.store import get_project
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.repeated_scans import BING, GA, HOTJAR, USER, Audit, page
from tests.support.world import Company


class TestAVendorThatWasDecidedOn:
    @pytest.mark.parametrize("state", ["approved", "ignored"])
    def test_is_not_raised_again_and_its_findings_name_the_decision(
        self, state: vendors.VendorState, audit: Audit, api: Api, company: Company
    ):
        _decide(audit, "google-analytics", state)
        scan = audit.scan({"a.html": page(GA, HOTJAR)})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "open"}
        shown = api.get(f"/v1/inbox/{audit.item().item_id}", company.owner.token).data
        (decision,) = shown["decisions"]
        assert (decision["vendorId"], decision["state"]) == ("google-analytics", state)
        assert shown["statusReason"] == f"The project {state} Google Analytics."
        issues = api.get(f"/v1/code-audit/scans/{scan.scan_id}/issues", company.owner.token).data["issues"]
        named = {issue["vendor"]["id"]: (issue["status"], issue["decisions"]) for issue in issues}
        assert named == {"google-analytics": ("resolved", [decision]), "hotjar": ("open", [])}
        audit.scan({"a.html": page(GA, HOTJAR)})
        assert audit.item().status == "resolved"

    def test_resolves_its_open_findings_at_the_next_scan(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        _decide(audit, "google-analytics", "approved")
        assert audit.item().status == "open"
        audit.scan({"a.html": page(GA)}, "locked")
        item = audit.item()
        assert (item.status, [decision.state for decision in item.decisions]) == ("resolved", ["approved"])
        _decide(audit, "google-analytics", "ignored")
        audit.scan({"a.html": page(GA)})
        assert [decision.state for decision in audit.item().decisions] == ["ignored"]
        assert audit.item().status == "resolved"

    @pytest.mark.parametrize("decided", ["dismissed", "accepted"])
    def test_keeps_the_decision_of_a_person_on_the_finding(self, decided: Status, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide(decided)
        _decide(audit, "google-analytics", "approved")
        audit.scan({"a.html": page(GA)})
        assert audit.item().status == decided

    def test_stays_open_if_a_person_reopens_its_finding(self, audit: Audit):
        _decide(audit, "google-analytics", "approved")
        audit.scan({"a.html": page(GA)})
        audit.decide("open")
        audit.scan({"a.html": page(GA)})
        assert audit.item().status == "open"

    def test_is_recognized_by_the_domain_that_the_runtime_saw(self, audit: Audit):
        _detect(audit, "ga4-tag", "www.google-analytics.com")
        _decide(audit, "ga4-tag", "approved")
        _decide(audit, "hotjar.com", "ignored")
        audit.scan({"a.html": page(GA, HOTJAR, BING)})
        statuses = audit.statuses()
        assert (statuses["Google Analytics"], statuses["Hotjar"]) == ("resolved", "resolved")
        assert audit.item("Microsoft").status == "open"
        code = [item for item in audit.items() if "Google Analytics is" in item.title]
        assert [decision.vendor_id for decision in code[0].decisions] == ["ga4-tag"]

    def test_of_another_project_is_raised(self, audit: Audit, company: Company):
        other = make_project(company, "Other")
        vendors.decide_vendor(get_project(other.project_id), "google-analytics", "approved", USER)
        audit.scan({"a.html": page(GA)})
        assert audit.item().status == "open"

    def test_settles_a_finding_about_several_vendors_only_together_with_them(self, audit: Audit):
        files = {"a.html": page(GA, HOTJAR), "src/consent.js": "1"}
        _decide(audit, "google-analytics", "approved")
        audit.scan(files)
        assert audit.item("never asks").status == "open"
        _decide(audit, "hotjar", "ignored")
        audit.scan(files)
        item = audit.item("never asks")
        assert (item.status, len(item.decisions)) == ("resolved", 2)
        assert item.status_reason == "The project approved Google Analytics, ignored Hotjar."

    def test_does_not_excuse_personal_data(self, audit: Audit):
        _decide(audit, "google-analytics", "approved")
        code = "const i = new Image(); i.src = `https://www.google-analytics.com/collect?email=${user.email}`;\n"
        audit.scan({"a.js": code})
        (item,) = [item for item in audit.items() if item.rule_id == "personal-data-in-tracking-address"]
        assert (item.status, item.decisions) == ("open", ())

    def test_is_not_counted_among_the_locked_findings(self, audit: Audit):
        _decide(audit, "google-analytics", "approved")
        audit.scan({"a.html": page(GA)}, "locked")
        assert audit.items() == []


def _decide(audit: Audit, vendor_id: str, state: vendors.VendorState) -> None:
    (link,) = audit.repository.links
    vendors.decide_vendor(get_project(link.project_id), vendor_id, state, USER)


def _detect(audit: Audit, vendor_id: str, domain: str) -> None:
    (link,) = audit.repository.links
    vendor = RuntimeVendor(link.project_id, vendor_id, "GA4", domain)
    detection = Detection(
        vendor=vendor,
        category="analytics",
        title="GA4 was seen",
        summary="",
        priority="P2",
        evidence=(),
        observed_at="2026-03-04T05:00:00.000Z",
    )
    detections.record_detection(detection)

"""Scans and findings in the deployed product: from queues and workers to people's decisions."""

from typing import Any

from local.github import setup
from tests.e2e.external import ExternalServices
from tests.e2e.people import Caller
from tests.e2e.story import UNLOCK_CREDITS, Decision, Opened, Preview, Unlock, list_code_findings


class TestScan:
    def test_a_scan_is_completed_at_the_branchs_head(self, scan: dict[str, Any], external: ExternalServices):
        assert (scan["status"], scan["failure"]) == ("completed", None)
        hosted = external.github.repositories.find(setup.DEMO_OWNER, setup.DEMO_NAME)
        assert hosted is not None
        head = hosted.find_commit("refs/heads/main")
        assert head is not None
        assert (scan["branch"], scan["headCommitSha"]) == ("main", head.sha)

    def test_a_scan_analyzes_with_the_artifacts_compiled_packages(self, scan: dict[str, Any]):
        assert scan["coverage"]["analyzedFiles"] >= 6
        assert scan["issueCount"] >= 4

    def test_a_scan_lists_what_the_repository_is_made_of(self, scan: dict[str, Any]):
        assert {"express", "react"} <= {it["id"] for it in scan["inventory"]["frameworks"]}
        assert "mixpanel" in {it["id"] for it in scan["inventory"]["vendors"]}

    def test_the_repository_is_listed_with_its_project(self, call: Caller, repository: str, project: dict[str, Any]):
        (found,) = [it for it in call(200, "GET", "/v1/code-audit/repositories") if it["id"] == repository]
        assert [it["projectId"] for it in found["projects"]] == [project["id"]]

    def test_the_scan_is_listed_under_its_repository_and_status(
        self, call: Caller, repository: str, scan: dict[str, Any]
    ):
        listed = call(200, "GET", f"/v1/code-audit/scans?limit=50&repositoryId={repository}&status=completed")
        assert scan["id"] in [it["id"] for it in listed]


class TestPreview:
    def test_the_preview_shows_the_three_most_urgent_findings(self, scan: dict[str, Any], preview: Preview):
        assert scan["access"] == "free-preview"
        assert len(preview.issues["issues"]) == 3
        assert preview.issues["lockedCount"] == scan["issueCount"] - 3
        assert preview.issues["unlockCredits"] == UNLOCK_CREDITS

    def test_the_preview_puts_only_those_findings_into_the_inbox(self, preview: Preview):
        shown = {it["inboxItemId"] for it in preview.issues["issues"]}
        assert {item["id"] for item in preview.inbox} == shown


class TestUnlock:
    def test_unlocking_requires_credits_and_charges_once(self, unlock: Unlock):
        assert unlock.refused.code == "INSUFFICIENT_CREDITS"
        assert (unlock.first["status"], unlock.again["status"]) == ("unlocked", "already-unlocked")
        assert unlock.balance == 1

    def test_unlocking_reveals_every_finding(self, call: Caller, scan: dict[str, Any], unlock: Unlock):
        issues = call(200, "GET", f"/v1/code-audit/scans/{scan['id']}/issues")
        assert (len(issues["issues"]), issues["lockedCount"]) == (scan["issueCount"], 0)

    def test_unlocking_puts_every_finding_into_the_inbox(self, scan: dict[str, Any], findings: list[dict[str, Any]]):
        assert len(findings) == scan["issueCount"]


class TestInbox:
    def test_a_finding_has_its_evidence(self, call: Caller, findings: list[dict[str, Any]], external: ExternalServices):
        item = call(200, "GET", f"/v1/inbox/{findings[-1]['id']}")
        assert item["evidence"][0]["url"].startswith(f"{external.url}/{setup.DEMO_OWNER}/{setup.DEMO_NAME}/blob/")

    def test_a_finding_is_dismissed_and_listed_as_dismissed(self, call: Caller, decision: Decision):
        listed = call(200, "GET", "/v1/inbox?status=dismissed")
        assert [it["id"] for it in listed] == [decision.changed["id"]]

    def test_a_second_decision_on_the_same_version_is_refused(self, decision: Decision):
        assert decision.refused.error["details"]["currentVersion"] == decision.changed["version"]
        assert decision.refused.error["details"]["currentStatus"] == "dismissed"


class TestIssue:
    def test_the_issue_exists_once_at_the_code_host(self, issue: Opened, external: ExternalServices):
        standing = external.github.list_issues(setup.DEMO_OWNER, setup.DEMO_NAME)
        (made,) = [it for it in standing if it.number == issue.first["githubIssue"]["number"]]
        assert issue.first["title"] in made.title
        # Only this attempt's text contains it.
        assert [it.number for it in standing if it.body == made.body] == [made.number]
        assert issue.first["githubIssue"]["url"].startswith(external.url)

    def test_requesting_the_issue_again_returns_it(self, issue: Opened):
        assert issue.again["githubIssue"] == issue.first["githubIssue"]


class TestIntake:
    def test_a_detection_becomes_an_open_finding_with_its_vendor(
        self, detection: dict[str, Any], project: dict[str, Any]
    ):
        assert (detection["status"], detection["priority"]) == ("open", "P1")
        assert detection["runtimeVendor"]["projectId"] == project["id"]
        assert detection["runtimeVendor"]["vendorId"] == "segment"

    def test_the_decision_on_the_vendor_resolves_its_finding(
        self, call: Caller, detection: dict[str, Any], vendor_decision: dict[str, Any]
    ):
        assert (vendor_decision["state"], vendor_decision["inboxItemId"]) == ("approved", detection["id"])
        assert call(200, "GET", f"/v1/inbox/{detection['id']}")["status"] == "resolved"

    def test_an_advisory_becomes_a_finding(self, advisory: dict[str, Any]):
        assert advisory["title"] == "Consent records before 2.1 lack the policy's version"
        assert advisory["priority"] == "P1"


class TestSecondScan:
    def test_the_second_scan_reports_nothing_twice(
        self, call: Caller, findings: list[Any], second_scan: dict[str, Any]
    ):
        assert len(list_code_findings(call)) == len(findings)

    def test_the_second_scan_of_the_commit_belongs_to_the_report_that_was_paid_for(
        self, call: Caller, second_scan: dict[str, Any]
    ):
        assert (second_scan["access"], second_scan["unlockCredits"]) == ("full", None)
        issues = call(200, "GET", f"/v1/code-audit/scans/{second_scan['id']}/issues")
        assert (len(issues["issues"]), issues["lockedCount"]) == (second_scan["issueCount"], 0)

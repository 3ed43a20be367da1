"""Scan requests, scans, and their findings are read and written without a change."""

from dataclasses import replace
from typing import Any

from controlplane.findings.fixes import Edit, Fix
from controlplane.platform.core.ids import ProjectId, RepositoryId, ScanId, ScanRequestId
from controlplane.platform.table.leases import LeaseState
from controlplane.platform.table.legs import decode_item, encode_item
from controlplane.platform.table.stored import read_map, to_map
from controlplane.scans.findings import FindingItem
from controlplane.scans.history import Absence, HistoryItem
from controlplane.scans.items import Comparison, Coverage, CoveredKind, Failure, Progress, RequestItem, ScanItem
from controlplane.scans.reads import Inventory, Language, Technology, UsedVendor, VendorPackage, stored_leg
from tests.support.audits import make_issue

_OWNER, _LOCAL = "3f8k2m9q7r1s5t6v", "01kb2m3n4p5q6r7s8t"
SCAN_ID, REQUEST_ID = f"scn_{_OWNER}{_LOCAL}", f"spr_{_OWNER}{_LOCAL}"
REPOSITORY_ID, PROJECT_ID = f"rep_{_OWNER}{_LOCAL}", f"prj_{_OWNER}{_LOCAL}"
OWNED = {
    "requestId": REQUEST_ID,
    "repositoryId": REPOSITORY_ID,
    "projectId": PROJECT_ID,
    "createdAt": "2026-03-04T05:06:07.000Z",
    "attempts": 0,
    "leaseUntil": 0,
}
REQUEST: dict[str, Any] = {
    "pk": f"ORG#org_{_OWNER}",
    "sk": f"SCANREQ#{_LOCAL}",
    **OWNED,
    "status": "starting",
    "requestedBy": "usr_8k2m9q7r1s5t6v3f",
}
QUEUED: dict[str, Any] = {
    "pk": f"ORG#org_{_OWNER}",
    "sk": f"SCAN#{_LOCAL}",
    "scanId": SCAN_ID,
    **OWNED,
    "repositoryName": "shop",
    "repositoryUrl": "https://github.com/acme/shop",
    "rootDirectory": None,
    "branch": "main",
    "headCommitSha": "1f0c2b9e",
    "status": "queued",
    "access": "free-preview",
    "unlockCredits": 50,
    "progress": {"stage": "fetch", "stageStatus": "pending", "completedStages": 0},
    "scansByStatus": f"org_{_OWNER}#queued",
    "scansByRepository": REPOSITORY_ID,
    "scansByRepositoryAndStatus": f"{REPOSITORY_ID}#queued",
}


def test_a_new_request_is_stored_and_read():
    request = RequestItem(
        request_id=ScanRequestId.stored(REQUEST_ID),
        repository_id=RepositoryId.stored(REPOSITORY_ID),
        project_id=ProjectId.stored(PROJECT_ID),
        status="starting",
        requested_by="usr_8k2m9q7r1s5t6v3f",
        created_at="2026-03-04T05:06:07.000Z",
    )
    assert request.to_item() == REQUEST
    assert RequestItem.from_item(REQUEST) == request


def test_a_new_scan_is_stored_and_read():
    scan = ScanItem.from_item(QUEUED)
    assert scan.to_item() == QUEUED
    assert "unlockCredits" not in replace(scan, access="full", unlock_credits=None).to_item()
    assert (scan.scan_id.location, scan.organization_id) == ((f"org_{_OWNER}", _LOCAL), f"org_{_OWNER}")


def test_a_report_is_identified_by_commit_folder_and_rules():
    scan = ScanItem.from_item(QUEUED)
    assert scan.report is None
    known = replace(scan, rules_version="5f0c")
    assert known.report == replace(known, scan_id=ScanId.stored(SCAN_ID), project_id=scan.project_id).report
    others = [
        replace(known, rules_version="5f0d"),
        replace(known, head_commit_sha="2f0c2b9e"),
        replace(known, root_directory="apps/web"),
    ]
    assert len({known.report, *(other.report for other in others)}) == 4
    assert ScanItem.from_item(known.to_item()) == known


def test_what_is_set_later_is_read_and_unknown_attributes_are_left_out():
    scan = ScanItem.from_item(QUEUED)
    completed = replace(
        scan,
        status="completed",
        finding_count=9,
        issue_count=0,
        findings_attempt=2,
        progress=Progress("publish", "completed", 4),
        coverage=Coverage(3, 2, {"link": 1}, (CoveredKind("ERB", 2, 1),), "Too large."),
        started_at="2026-03-04T05:06:08.000Z",
        completed_at="2026-03-04T05:06:09.000Z",
        findings_expire_at=1_790_000_000,
        lease=LeaseState(attempts=2, claim="9b1c", until=1_790_000_300),
    )
    failed = replace(scan, status="failed", failure=Failure("X", "x."), queued_at="2026-03-04T05:06:08.000Z")
    analyzing = replace(scan, status="running", progress=Progress("analyze", "running", 2, 1_200, 3_650))
    for item in (completed, failed, analyzing):
        assert ScanItem.from_item({**item.to_item(), "scope": "repository"}) == item
    started = replace(RequestItem.from_item(REQUEST), status="started", scan_id=ScanId.stored(SCAN_ID))
    assert RequestItem.from_item({**started.to_item(), "later": 1}) == started


def test_a_comparison_is_read_as_stored():
    scan = ScanItem.from_item(QUEUED)
    assert (scan.comparison, scan.priority_counts, scan.visible_priorities) == (None, None, None)
    of_pull_request = {"baseScanId": SCAN_ID, "fixedCount": 1, "fixed": ["77ab"]}
    assert read_map(Comparison, of_pull_request) == Comparison(SCAN_ID, 1, ("77ab",), new_count=None)
    assert to_map(read_map(Comparison, of_pull_request)) == of_pull_request
    compared = replace(scan, comparison=Comparison(SCAN_ID, 0, (), new_count=0), priority_counts={"P0": 2, "P2": 1})
    assert ScanItem.from_item(decode_item(encode_item(compared.to_item()))) == compared
    finding = replace(make_issue(), is_new=True)
    assert FindingItem.from_item(finding.to_map()) == finding
    assert "isNew" not in make_issue().to_map()


def test_only_readable_findings_are_counted_by_priority():
    scan = replace(ScanItem.from_item(QUEUED), issue_count=6, priority_counts={"P2": 2, "P0": 1, "P1": 3})
    assert scan.visible_priorities == {"P0": 1, "P1": 2, "P2": 0}  # a free preview: three findings
    shown = replace(scan, preview_counts={"P1": 1, "P2": 2})
    assert ScanItem.from_item(shown.to_item()).visible_priorities == {"P0": 0, "P1": 1, "P2": 2}
    assert replace(scan, access="locked").visible_priorities == {"P0": 0, "P1": 0, "P2": 0}
    assert replace(shown, access="full").visible_priorities == scan.priority_counts


def test_an_inventory_is_read_as_stored():
    inventory = Inventory(
        files=412,
        languages=(Language("Ruby", 310, 912_345),),
        frameworks=(Technology("rails", "Ruby on Rails", "~> 8.0", "Gemfile"),),
        package_managers=(Technology("bundler", "Bundler", None, "Gemfile.lock"),),
        vendors=(
            UsedVendor(
                id="posthog",
                name="PostHog",
                category="analytics",
                packages=(VendorPackage("posthog-js", "^1.2.0", "package.json"), VendorPackage("posthog", None, "a")),
                hosts=("eu.posthog.com",),
                loading_files=2,
                ungated_files=1,
            ),
            UsedVendor(id="segment", name="Segment", category="analytics"),
        ),
        truncated=True,
    )
    item = stored_leg(ScanId.stored(SCAN_ID), inventory).item
    assert (item["pk"], item["sk"]) == (f"SCAN#{SCAN_ID}", "INVENTORY")
    assert read_map(Inventory, decode_item(encode_item(item))) == inventory


def test_findings_and_history_are_read_as_stored():
    known = {"pk": f"REPO#{REPOSITORY_ID}", "sk": "FP#77ab", "firstSeenAt": "2026-03-04T05:06:07.000Z"}
    known |= {"ruleId": "cookie", "content": "0b1c", "shape": "5e1f", "path": "a.js"}
    history = HistoryItem.from_item(known)
    assert (history.repository_id, history.fingerprint, history.gone) == (REPOSITORY_ID, "77ab", None)
    assert history.to_item() == known
    gone = replace(
        history, ordinal=1, place="93fe", project_ids=(PROJECT_ID,),
        gone=Absence(SCAN_ID, "2026-03-05T05:06:07.000Z"), unsettled=True,
    )  # fmt: skip
    assert HistoryItem.from_item({**gone.to_item(), "later": 1}) == gone
    fix = Fix("Load it later.", "js", "load()", ("a@^1",), (Edit("a.js", 3, "now()", "later()"),))
    fixed = replace(make_issue(), confidence="low", fix=fix)
    assert FindingItem.from_item(decode_item(encode_item(fixed.to_map()))) == fixed

"""Scans know their report, their priorities, and what they are compared with."""

from dataclasses import replace

from controlplane.platform.core.ids import ScanId
from controlplane.platform.table.legs import decode_item, encode_item
from controlplane.platform.table.stored import read_map, to_map
from controlplane.scans.items import Comparison, ScanItem

_OWNER, _LOCAL = "3f8k2m9q7r1s5t6v", "01kb2m3n4p5q6r7s8t"
SCAN_ID = f"scn_{_OWNER}{_LOCAL}"
QUEUED = {
    "pk": f"ORG#org_{_OWNER}",
    "sk": f"SCAN#{_LOCAL}",
    "scanId": SCAN_ID,
    "requestId": f"spr_{_OWNER}{_LOCAL}",
    "repositoryId": f"rep_{_OWNER}{_LOCAL}",
    "projectId": f"prj_{_OWNER}{_LOCAL}",
    "createdAt": "2026-03-04T05:06:07.000Z",
    "attempts": 0,
    "leaseUntil": 0,
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
    "scansByRepository": f"rep_{_OWNER}{_LOCAL}",
    "scansByRepositoryAndStatus": f"rep_{_OWNER}{_LOCAL}#queued",
}


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


def test_a_comparison_is_read_as_stored():
    scan = ScanItem.from_item(QUEUED)
    assert (scan.comparison, scan.priority_counts, scan.visible_priorities) == (None, None, None)
    of_pull_request = {"baseScanId": SCAN_ID, "fixedCount": 1, "fixed": ["77ab"]}
    assert read_map(Comparison, of_pull_request) == Comparison(SCAN_ID, 1, ("77ab",), new_count=None)
    assert to_map(read_map(Comparison, of_pull_request)) == of_pull_request
    compared = replace(scan, comparison=Comparison(SCAN_ID, 0, (), new_count=0), priority_counts={"P0": 2, "P2": 1})
    assert ScanItem.from_item(decode_item(encode_item(compared.to_item()))) == compared


def test_only_readable_findings_are_counted_by_priority():
    scan = replace(ScanItem.from_item(QUEUED), issue_count=6, priority_counts={"P2": 2, "P0": 1, "P1": 3})
    assert scan.visible_priorities == {"P0": 1, "P1": 2, "P2": 0}  # a free preview: three findings
    shown = replace(scan, preview_counts={"P1": 1, "P2": 2})
    assert ScanItem.from_item(shown.to_item()).visible_priorities == {"P0": 0, "P1": 1, "P2": 2}
    assert replace(scan, access="locked").visible_priorities == {"P0": 0, "P1": 0, "P2": 0}
    assert replace(shown, access="full").visible_priorities == scan.priority_counts

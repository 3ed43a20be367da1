"""GET /v1/code-audit/scans/{scanId}: one scan, in every state."""

from controlplane.platform.table.table import table
from controlplane.scans import execution
from controlplane.scans.items import STAGES, Coverage
from controlplane.scans.reads import Inventory, stored_leg
from tests.functional.code_audit.conftest import ISSUES, ONE, Organization, change
from tests.support.audits import end_scan, lease_of
from tests.support.code_host import SHA
from tests.support.each import each
from tests.support.table import PREPARED


def progress(stage, stage_status, completed):
    return {
        "stage": stage, "stageStatus": stage_status, "completedStages": completed, "totalStages": 4,
        "analyzedFiles": None, "filesToAnalyze": None,
    }  # fmt: skip


def test_a_completed_preview_has_all_fields(acme):
    repository = acme.connect(name="shop")
    scan = acme.scan(repository, issues=ISSUES)
    assert acme.get(scan).data == {
        "id": scan.scan_id,
        "organizationId": acme.id,
        "repositoryId": repository.repository_id,
        "repositoryName": "shop",
        "branch": "main",
        "headCommitSha": SHA,
        "pullRequestNumber": None,
        "scope": "repository",
        "trigger": "manual",
        "status": "completed",
        "access": "free-preview",
        "unlockCredits": 50,
        "findingCount": 5,
        "issueCount": 5,
        "progress": progress("publish", "completed", 4),
        "createdAt": "2026-03-04T05:06:07.000Z",
        "startedAt": "2026-03-04T05:06:07.000Z",
        "completedAt": "2026-03-04T05:06:07.000Z",
        "failure": None,
        "coverage": {
            "files": 10,
            "analyzedFiles": 9,
            "skipped": {"minified": 1},
            "kinds": [{"name": "ERB", "analyzedFiles": 9, "unassessedFiles": 1}],
            "incomplete": None,
            "suppressed": {},
            "notes": [],
        },
        "findingsExpireAt": None,
        "inventory": None,
    }


def test_a_queued_scan_has_no_counts_and_no_times(acme):
    shown = acme.get(acme.scan(status="queued")).data
    assert (shown["status"], shown["progress"]) == ("queued", progress("fetch", "pending", 0))
    assert {name for name, value in shown.items() if value is None} == {
        "pullRequestNumber", "findingCount", "issueCount", "startedAt", "completedAt", "failure", "coverage",
        "findingsExpireAt", "inventory",
    }  # fmt: skip


def test_each_time_is_that_of_its_event(acme, now):
    scan = acme.scan(status="queued")
    now.advance(1)
    execution.acquire_scan(scan.scan_id, 420)
    now.advance(1)
    end_scan(scan)
    shown = acme.get(scan).data
    times = [shown[name] for name in ("createdAt", "startedAt", "completedAt")]
    assert times == [f"2026-03-04T05:06:{second}.000Z" for second in ("07", "08", "09")]


def test_places_and_distinct_findings_have_separate_counts_and_an_inventory_can_be_truncated(acme):
    scan = acme.scan(status="running")
    execution.complete_scan(scan, lease_of(scan), 7, 5, Coverage(1, 1, {}))
    table.put(stored_leg(scan.scan_id, Inventory(files=10, truncated=True)), PREPARED)
    shown = acme.get(scan).data
    assert (shown["findingCount"], shown["issueCount"], shown["inventory"]["truncated"]) == (7, 5, True)


@each("trigger", ["push", "scheduled"])
def test_a_scan_that_no_person_started_says_what_started_it(trigger, acme):
    scan = acme.scan()
    change(scan, cause={"trigger": trigger})
    shown = acme.get(scan).data
    assert (shown["trigger"], shown["scope"]) == (trigger, "repository")


@each("stage", STAGES)
def test_a_running_scan_shows_its_stage(stage, acme):
    scan, done = acme.scan(status="running"), STAGES.index(stage)
    for status, completed in (("running", done), ("completed", done + 1)):
        execution.report_stage(lease_of(scan), stage, status)
        assert acme.get(scan).data["progress"] == progress(stage, status, completed)


def test_a_failed_scan_shows_the_reason_and_the_stage(acme):
    shown = acme.get(acme.scan(status="failed")).data
    assert (shown["status"], shown["unlockCredits"]) == ("failed", None)
    assert shown["failure"] == {"code": "REPOSITORY_TOO_LARGE", "message": "Too large."}
    assert shown["progress"]["stageStatus"] == "failed"
    assert shown["completedAt"] == "2026-03-04T05:06:07.000Z"


@each(("options", "price"), [({"issues": [ONE]}, 0), ({"again": "full", "status": "queued"}, None)])
def test_unlocking_is_free_if_nothing_is_locked_and_a_full_scan_has_no_price(options, price, acme):
    assert acme.get(acme.scan(**options)).data["unlockCredits"] == price


def test_a_scan_of_another_organization_looks_like_an_unknown_one(acme, api, world):
    scan = Organization(api, world).scan(again="full", issues=ISSUES)
    unknown = f"{scan.scan_id[:-1]}{'0' if scan.scan_id[-1] != '0' else '1'}"
    for report in ("", "/issues", "/sarif", "/diff", f"/diff?base={scan.scan_id}"):
        replies = [acme.get(it, report) for it in (scan, unknown)]
        assert ([it.code for it in replies], replies[0].text) == (["NOT_FOUND"] * 2, replies[1].text), report
    assert acme.unlock(scan).code == "NOT_FOUND"

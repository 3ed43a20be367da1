"""GET /v1/code-audit/scans/{scanId}: one scan, in every state."""

from controlplane.store.scans import execution
from controlplane.store.scans.causes import Trigger
from controlplane.store.scans.inventories import Inventory
from controlplane.store.scans.progress import STAGES, Coverage, Stage
from controlplane.store.table import Put, Update, table
from tests.support.api import Api
from tests.support.audits import end_scan, lease_of, make_issue, make_scan
from tests.support.code_host import SHA
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import World

FIELDS = {
    "id", "organizationId", "repositoryId", "repositoryName", "branch", "headCommitSha", "pullRequestNumber", "scope",
    "trigger", "status", "access", "unlockCredits", "findingCount", "issueCount", "progress", "createdAt", "startedAt",
    "completedAt", "failure", "coverage", "findingsExpireAt", "inventory",
}  # fmt: skip


def progress(stage: str, stage_status: str, completed: int) -> dict[str, object]:
    return {
        "stage": stage,
        "stageStatus": stage_status,
        "completedStages": completed,
        "totalStages": 4,
        "analyzedFiles": None,
        "filesToAnalyze": None,
    }


def read(api: Api, token: str, scan_id: str):
    reply = api.get(f"/v1/code-audit/scans/{scan_id}", token)
    assert reply.status == 200, reply.text
    assert set(reply.data) == FIELDS
    return reply.data


class Test200:
    def test_returns_a_completed_preview(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company, name="shop")
        scan = make_scan(repository, issues=[make_issue(number) for number in range(1, 6)])
        assert read(api, company.owner.token, scan.scan_id) == {
            "id": scan.scan_id,
            "organizationId": company.organization_id,
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
            },
            "findingsExpireAt": None,
            "inventory": None,
        }

    def test_says_that_the_inventory_does_not_list_everything(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company))
        table.put(Put(Inventory(files=10, truncated=True).to_item(scan.scan_id)), PREPARED)
        inventory = read(api, company.owner.token, scan.scan_id)["inventory"]
        assert isinstance(inventory, dict)
        assert inventory["truncated"] is True

    def test_a_queued_scan_has_no_counts_and_no_times(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), status="queued")
        shown = read(api, company.owner.token, scan.scan_id)
        assert shown["status"] == "queued"
        assert shown["progress"] == progress("fetch", "pending", 0)
        empty = {name for name, value in shown.items() if value is None}
        assert empty == {
            "pullRequestNumber", "findingCount", "issueCount", "startedAt", "completedAt", "failure", "coverage",
            "findingsExpireAt", "inventory",
        }  # fmt: skip

    def test_each_time_is_that_of_its_event(self, api: Api, world: World, now):
        company = world.company()
        scan = make_scan(world.connected_repository(company), status="queued")
        now.advance(1)
        execution.acquire_scan(scan.scan_id, 420)
        now.advance(1)
        end_scan(scan)
        shown = read(api, company.owner.token, scan.scan_id)
        times = [shown[name] for name in ("createdAt", "startedAt", "completedAt")]
        assert times == [f"2026-03-04T05:06:{second}.000Z" for second in ("07", "08", "09")]

    def test_places_and_distinct_findings_are_counted_apart(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), status="running")
        execution.complete_scan(scan, lease_of(scan), 7, 5, Coverage(1, 1, {}))
        shown = read(api, company.owner.token, scan.scan_id)
        assert (shown["findingCount"], shown["issueCount"]) == (7, 5)

    @each("trigger", ["push", "scheduled"])
    def test_a_scan_that_nobody_started_is_shown_as_scheduled(self, trigger: Trigger, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company))
        table.update(Update(scan.key, "SET #trigger = :trigger", values={"trigger": trigger}), PREPARED)
        shown = read(api, company.owner.token, scan.scan_id)
        assert (shown["trigger"], shown["scope"]) == ("scheduled", "repository")

    @each("stage", STAGES)
    def test_a_running_scan_shows_its_stage(self, stage: Stage, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), status="running")
        done = STAGES.index(stage)
        execution.report_stage(lease_of(scan), stage, "running")
        shown = read(api, company.owner.token, scan.scan_id)["progress"]
        assert shown == progress(stage, "running", done)
        execution.report_stage(lease_of(scan), stage, "completed")
        shown = read(api, company.owner.token, scan.scan_id)["progress"]
        assert shown == progress(stage, "completed", done + 1)

    def test_a_failed_scan_shows_the_reason_and_the_stage(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), status="failed")
        shown = read(api, company.owner.token, scan.scan_id)
        assert shown["status"] == "failed"
        assert shown["failure"] == {"code": "REPOSITORY_TOO_LARGE", "message": "Too large."}
        assert shown["progress"]["stageStatus"] == "failed"
        assert shown["completedAt"] is not None
        assert shown["unlockCredits"] is None

    def test_unlocking_is_free_if_nothing_is_locked(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), issues=[make_issue(1)])
        assert read(api, company.owner.token, scan.scan_id)["unlockCredits"] == 0

    def test_a_full_scan_has_no_price(self, api: Api, world: World):
        company = world.company()
        scan = make_scan(world.connected_repository(company), again="full", status="queued")
        assert read(api, company.owner.token, scan.scan_id)["unlockCredits"] is None

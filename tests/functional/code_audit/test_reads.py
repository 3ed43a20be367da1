"""Reads of scans and of requests for scans: one in each state, and lists with their filters and pages."""

from itertools import product

from controlplane.platform.table.table import table
from controlplane.scans import execution, failures, requests
from controlplane.scans.items import Coverage, Failure
from controlplane.scans.reads import Inventory, stored_leg
from tests.functional.code_audit.conftest import ISSUES, ONE, SCANS, Organization, change
from tests.support.audits import end_scan, lease_of, make_request
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


def test_a_failed_scan_shows_the_reason_and_the_stage(acme):
    shown = acme.get(acme.scan(status="failed")).data
    assert (shown["status"], shown["unlockCredits"]) == ("failed", None)
    assert shown["failure"] == {"code": "REPOSITORY_TOO_LARGE", "message": "Too large."}
    assert shown["progress"]["stageStatus"] == "failed"
    assert shown["completedAt"] == "2026-03-04T05:06:07.000Z"


@each(("options", "price"), [({"issues": [ONE]}, 0), ({"again": "full", "status": "queued"}, None)])
def test_unlocking_is_free_if_nothing_is_locked_and_a_full_scan_has_no_price(options, price, acme):
    assert acme.get(acme.scan(**options)).data["unlockCredits"] == price


def read_request(acme, request_id, repository_id, who=None):
    return acme.send("GET", f"/v1/code-audit/scan-requests/{request_id}?repositoryId={repository_id}", None, who)


def test_a_starting_request_tells_callers_with_either_scope_when_to_retry(acme, world):
    repository = acme.connect()
    request_id = make_request(repository)
    for scope in ("code-audit.read", "code-audit.write"):
        reply = read_request(acme, request_id, repository.repository_id, world.token(acme.owner.user_id, [scope]))
        assert (reply.status, reply.headers["retry-after"]) == (200, "2")
        assert reply.data == {
            "status": "starting",
            "preparationId": request_id,
            "repositoryId": repository.repository_id,
            "createdAt": "2026-03-04T05:06:07.000Z",
            "retryAfterSeconds": 2,
        }


def test_a_started_request_contains_the_scan(acme):
    repository = acme.connect()
    scan = acme.scan(repository, status="running")
    reply = read_request(acme, scan.request_id, repository.repository_id)
    shown = acme.get(scan).data
    del shown["inventory"]
    assert (reply.data, "retry-after" in reply.headers) == ({"status": "started", "scan": shown}, False)


def test_a_failed_request_contains_the_reason(acme):
    repository = acme.connect()
    request_id = make_request(repository)
    lease, _ = requests.acquire_request(request_id, 30)
    failures.fail_attempted(request_id, Failure("BRANCH_GONE", "It does not exist."), lease)
    assert read_request(acme, request_id, repository.repository_id).data == {
        "status": "failed",
        "preparationId": request_id,
        "repositoryId": repository.repository_id,
        "error": {"code": "BRANCH_GONE", "message": "It does not exist."},
    }


def test_the_repository_is_required_and_must_be_the_requests(acme, api, world):
    request_id = make_request(acme.connect())
    reply = acme.send("GET", f"/v1/code-audit/scan-requests/{request_id}")
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert reply.error["details"][0]["path"] == ["repositoryId"]
    other, theirs = acme.connect().repository_id, Organization(api, world).connect()
    replies = [read_request(acme, request_id, other), read_request(acme, request_id, "nonsense")]
    replies.append(read_request(acme, make_request(theirs), theirs.repository_id))
    assert {(reply.status, reply.text) for reply in replies} == {(404, replies[0].text)}


STATUSES = ("completed", "failed", "running", "queued", "canceled")


def listed(acme, query=""):
    return acme.send("GET", f"{SCANS}?organizationId={acme.id}{query}")


def ids(acme, query=""):
    return [scan["id"] for scan in listed(acme, query).data]


def test_a_list_has_whole_scans_without_their_inventories(acme):
    scan = acme.scan()
    # Only a scan of its own has the inventory, whose size would multiply the price of a list.
    assert [{**it, "inventory": None} for it in listed(acme).data] == [acme.get(scan).data]


def test_filters_work_alone_and_together_and_the_newest_is_first(acme, api, world, now):
    shop, blog, theirs = acme.connect(), acme.connect(), Organization(api, world).connect()
    made = {}
    for repository, status in product((shop, blog, theirs), STATUSES[:3]):
        made[repository.repository_id, status] = acme.scan(repository, status=status).scan_id
        now.advance(1)
    own = [it for it in made if it[0] != theirs.repository_id][::-1]
    assert ids(acme) == [made[it] for it in own]
    named = [it.repository_id for it in (shop, blog, theirs)]
    for only, status in product([*named, "nonsense", None], [*STATUSES, None]):
        query = (f"&repositoryId={only}" if only else "") + (f"&status={status}" if status else "")
        assert ids(acme, query) == [made[it] for it in own if it == (only or it[0], status or it[1])], query

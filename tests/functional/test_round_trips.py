"""Each operation of the API takes no more sequential round trips than docs/performance.md says."""

from dataclasses import replace

from benchmarks import goals
from controlplane.platform.core.settings import settings
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Update, table
from controlplane.scans.items import Comparison, ScanItem
from tests.functional.test_every_route import required
from tests.support.audits import make_issue, make_request, make_scan
from tests.support.operations import Operation, operations
from tests.support.subject import Subject, filled
from tests.support.table import PREPARED
from tests.support.trips import counted_trips
from tests.support.valid_requests import USUAL, Request

_MESSAGE = "a message is sent after the transaction, and then its entry in the outbox is deleted"
# What exceeds the goal, by operation and credential: the number of round trips, and why. An entry must be current.
EXCEPTIONS: dict[tuple[str, str], tuple[int, str]] = {
    ("startScan", "user token"): (5, _MESSAGE),
    ("unlockScan", "user token"): (5, _MESSAGE),
    ("startAuditRun", "user token"): (5, _MESSAGE),
    ("startAuditRun", "api key"): (5, _MESSAGE),
    ("deleteAudit", "api key"): (4, "the audit's schedule says where the sweep's entry is"),
    ("replayWebhookDelivery", "user token"): (5, _MESSAGE),
    ("createGithubIssue", "user token"): (5, "a message is sent, and that there is no issue yet is kept as a refusal"),
}
READS = {it.route.operation_id or "": it for it in operations() if it.requires is not None and it.method == "GET"}
WRITES = {it.route.operation_id or "": it for it in operations() if it.requires is not None and it.method != "GET"}


def exceeding(counted: dict[tuple[str, str], int], extra: int) -> dict[tuple[str, str], int]:
    """Returns the numbers that are above the goal."""
    return {case: trips for case, trips in counted.items() if trips > goals.READ_TRIPS[case[1]] + extra}


def expected(names: dict[str, Operation]) -> dict[tuple[str, str], int]:
    return {case: trips for case, (trips, _) in EXCEPTIONS.items() if case[0] in names}


def kinds(operation: Operation) -> list[str]:
    """Returns the kinds of credential that the operation accepts."""
    return ["user token", "api key"] if required(operation).accepts_keys else ["user token"]


def new_token(subject: Subject, credential: str) -> str:
    """Returns a new credential after its first request, which opens its minute."""
    of_person = credential == "user token"
    token = subject.world.token(subject.owner.user_id) if of_person else subject.world.key(subject.company)
    assert subject.api.get("/v1/projects", token).status == 200
    return token


def count_trips(request: Request, token: str) -> int:
    with counted_trips() as trips:
        reply = request.send(token)
    assert reply.status < 300 or request.path.endswith("/github-issue"), (request.path, reply.text)
    return trips.taken


def compared_scan(subject: Subject) -> tuple[ScanItem, ScanItem]:
    """Returns a scan with new, fixed, and unchanged findings, and the one that it was compared with."""
    issues = [make_issue(number) for number in range(1, 5)]
    base = make_scan(subject.repository, again="full", issues=issues[:2])
    scan = make_scan(
        subject.repository, access="full", issues=[issues[1], *(replace(it, is_new=True) for it in issues[2:])]
    )
    comparison = Comparison(base.scan_id, 1, (issues[0].fingerprint,), 2)
    table.update(Update(scan.key, "SET #comparison = :new", values={"new": to_map(comparison)}), PREPARED)
    return scan, base


def read_request(subject: Subject, name: str, token: str) -> Request:
    path = READS[name].path
    if name == "getScanRequest":
        path = path.replace("{preparationId}", make_request(subject.repository)) + "?repositoryId={repositoryId}"
    if name in {"listScanIssues", "getScanSarif", "compareScans", "getScan"}:
        path = path.replace("{scanId}", compared_scan(subject)[0].scan_id)
    if name == "getRequest":
        path = path.replace("{requestId}", subject.api.get("/v1/projects/x", token).headers["x-request-id"])
    if "{webhookId}" in path:
        assert subject["eventId"]
    return Request(subject, "GET", filled(path, subject), None)


def test_every_read_takes_as_many_round_trips_as_the_goal(api, world):
    counted = {}
    for name, operation in READS.items():
        subject = Subject(world, api)
        for credential in kinds(operation):
            token = new_token(subject, credential)
            counted[name, credential] = count_trips(read_request(subject, name, token), token)
    assert len(counted) > len(READS)
    assert exceeding(counted, 0) == expected(READS)


def test_a_comparison_with_a_chosen_scan_takes_no_more(api, world):
    subject = Subject(world, api)
    scan, base = compared_scan(subject)
    path = READS["compareScans"].path.replace("{scanId}", scan.scan_id)
    request = Request(subject, "GET", f"{path}?base={base.scan_id}", None)
    assert count_trips(request, new_token(subject, "user token")) <= goals.READ_TRIPS["user token"]


def test_every_write_takes_one_more_than_a_read(api, world, sqs, monkeypatch):
    monkeypatch.setitem(settings.__dict__, "issue_wait_seconds", 0)
    assert WRITES.keys() <= USUAL.keys()
    counted = {}
    for name, operation in WRITES.items():
        for credential in kinds(operation):
            subject = Subject(world, api)
            request = USUAL[name].prepared(subject)
            counted[name, credential] = count_trips(request, new_token(subject, credential))
    assert len(counted) > len(WRITES)
    assert exceeding(counted, goals.WRITE_EXTRA_TRIPS) == expected(WRITES)


def test_all_but_the_first_invitation_of_an_organization_take_as_many_as_other_writes(api, world):
    subject = Subject(world, api)
    assert subject.invitation_id
    token, request = new_token(subject, "user token"), USUAL["createInvitation"].prepared(subject)
    assert count_trips(request, token) == goals.READ_TRIPS["user token"] + 1

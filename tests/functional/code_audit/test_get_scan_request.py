"""GET /v1/code-audit/scan-requests/{preparationId}: the outcome of a scan request."""

from controlplane.scans import failures, requests
from controlplane.scans.items import Failure
from tests.functional.code_audit.conftest import Organization
from tests.support.audits import make_request


def read(acme, request_id, repository_id, who=None):
    return acme.send("GET", f"/v1/code-audit/scan-requests/{request_id}?repositoryId={repository_id}", None, who)


def test_a_starting_request_tells_callers_with_either_scope_when_to_retry(acme, world):
    repository = acme.connect()
    request_id = make_request(repository)
    for scope in ("code-audit.read", "code-audit.write"):
        reply = read(acme, request_id, repository.repository_id, world.token(acme.owner.user_id, [scope]))
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
    reply = read(acme, scan.request_id, repository.repository_id)
    shown = acme.get(scan).data
    del shown["inventory"]
    assert (reply.data, "retry-after" in reply.headers) == ({"status": "started", "scan": shown}, False)


def test_a_failed_request_contains_the_reason(acme):
    repository = acme.connect()
    request_id = make_request(repository)
    lease, _ = requests.acquire_request(request_id, 30)
    failures.fail_attempted(request_id, Failure("BRANCH_GONE", "It does not exist."), lease)
    assert read(acme, request_id, repository.repository_id).data == {
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
    replies = [read(acme, request_id, other), read(acme, request_id, "nonsense")]
    replies.append(read(acme, make_request(theirs), theirs.repository_id))
    assert {(reply.status, reply.text) for reply in replies} == {(404, replies[0].text)}

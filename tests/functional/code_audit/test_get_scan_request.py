"""GET /v1/code-audit/scan-requests/{preparationId}: the outcome of a scan request."""

from controlplane.store.scans import failures, requests
from controlplane.store.scans.items import Failure
from tests.support.api import Api, Reply
from tests.support.audits import make_request, make_scan
from tests.support.world import World

PATH = "/v1/code-audit/scan-requests/"


def read(api: Api, token: str, request_id: str, repository_id: str) -> Reply:
    return api.get(f"{PATH}{request_id}?repositoryId={repository_id}", token)


class Test200:
    def test_a_starting_request_says_when_to_retry(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        request_id = make_request(repository)
        reply = read(api, company.owner.token, request_id, repository.repository_id)
        assert reply.status == 200
        assert reply.headers["retry-after"] == "2"
        assert reply.data == {
            "status": "starting",
            "preparationId": request_id,
            "repositoryId": repository.repository_id,
            "createdAt": "2026-03-04T05:06:07.000Z",
            "retryAfterSeconds": 2,
        }

    def test_a_started_request_contains_the_scan(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        scan = make_scan(repository, status="running")
        reply = read(api, company.owner.token, scan.request_id, repository.repository_id)
        shown = api.get(f"/v1/code-audit/scans/{scan.scan_id}", company.owner.token).data
        del shown["inventory"]
        assert reply.data == {"status": "started", "scan": shown}
        assert "retry-after" not in reply.headers

    def test_a_failed_request_contains_the_reason(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        request_id = make_request(repository)
        lease, _ = requests.acquire_request(request_id, 30)
        failures.fail_attempted(request_id, Failure("BRANCH_GONE", "It does not exist."), lease)
        reply = read(api, company.owner.token, request_id, repository.repository_id)
        assert reply.status == 200
        assert reply.data == {
            "status": "failed",
            "preparationId": request_id,
            "repositoryId": repository.repository_id,
            "error": {"code": "BRANCH_GONE", "message": "It does not exist."},
        }

    def test_either_scope_is_accepted(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        request_id = make_request(repository)
        for scope in ("code-audit.read", "code-audit.write"):
            token = world.token(company.owner.user_id, [scope])
            assert read(api, token, request_id, repository.repository_id).status == 200


class Test400:
    def test_returns_400_without_the_repository(self, api: Api, world: World):
        company = world.company()
        request_id = make_request(world.connected_repository(company))
        reply = api.get(f"{PATH}{request_id}", company.owner.token)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert reply.error["details"][0]["path"] == ["repositoryId"]


class Test404:
    def test_another_repository_or_another_organization_is_not_found(self, api: Api, world: World):
        company = world.company()
        repository, other = world.connected_repository(company), world.connected_repository(company)
        request_id = make_request(repository)
        replies = [
            read(api, company.owner.token, request_id, other.repository_id),
            read(api, company.owner.token, request_id, "nonsense"),
            read(api, world.company().owner.token, request_id, repository.repository_id),
        ]
        assert {(reply.status, reply.text) for reply in replies} == {(404, replies[0].text)}

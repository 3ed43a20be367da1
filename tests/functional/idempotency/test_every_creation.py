"""Every operation that creates something accepts Idempotency-Key, and every one that accepts it honors it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from controlplane.store import api_keys
from controlplane.store.idempotency import LEASE_SECONDS
from controlplane.store.keys import Key
from controlplane.store.table import Update, table
from tests.functional.conftest import FakeClock
from tests.functional.projects.builders import make_project
from tests.support.api import Api, Reply
from tests.support.calls import before_the_transaction
from tests.support.crashes import dies_at
from tests.support.endpoints import endpoint
from tests.support.operations import operations
from tests.support.table import PREPARED
from tests.support.world import Company, World, table_dump

pytestmark = pytest.mark.usefixtures("sqs")

KEY = {"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"}
# A device has no caller yet to bind a key to, and an issue is identified by its inbox item.
WITHOUT_THE_HEADER = {"POST /v1/auth/device/code", "POST /v1/inbox/{itemId}/github-issue"}
# Repeating it completes it, because each of its items recognizes a change that it has.
COMPLETED = "PATCH /v1/inbox"
# It takes no field, and ignores unknown ones.
ROTATION = "POST /v1/webhook-endpoints/{webhookId}/rotate-secret"


class Requests(NamedTuple):
    """A request, and another one with the same Idempotency-Key."""

    path: str
    body: dict[str, Any]
    other_body: dict[str, Any]


def _link(world: World, company: Company) -> Requests:
    repository = world.connected_repository(company, linked=False)
    body = {"projectId": make_project(company).project_id, "rootDirectory": "web"}
    path = f"/v1/code-audit/repositories/{repository.repository_id}/links"
    return Requests(path, body, {**body, "rootDirectory": "api"})


def _roll(_world: World, company: Company) -> Requests:
    made = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
    return Requests(f"/v1/api-keys/{made.item.key_id}/roll", {}, {"gracePeriodSeconds": 60})


def _rotation(_world: World, company: Company) -> Requests:
    return Requests(f"/v1/webhook-endpoints/{endpoint(company).webhook_id}/rotate-secret", {}, {})


def _scan(world: World, company: Company) -> Requests:
    first, other = (world.connected_repository(company).repository_id for _ in range(2))
    return Requests("/v1/code-audit/scans", {"repositoryId": first}, {"repositoryId": other})


def _items(world: World, company: Company) -> Requests:
    found = [world.finding(company) for _ in range(2)]

    def body(status: str) -> dict[str, Any]:
        return {"items": [{"id": item.item_id, "status": status, "version": item.version} for item in found]}

    return Requests("/v1/inbox", body("accepted"), body("dismissed"))


def _fixed(path: str, body: dict[str, Any], **others: Any) -> Callable[[World, Company], Requests]:
    return lambda world, company: Requests(path, body, {**body, **others})


CASES: dict[str, Callable[[World, Company], Requests]] = {
    "POST /v1/organizations": _fixed("/v1/organizations", {"name": "New Company"}, name="Another Company"),
    "POST /v1/invitations": _fixed("/v1/invitations", {"email": "grace@example.com", "role": "member"}, role="admin"),
    "POST /v1/projects": _fixed(
        "/v1/projects",
        {"name": "Shop", "region": "eu-central", "websites": ["shop.example.com"]},
        websites=["other.example.com"],
    ),
    "POST /v1/api-keys": _fixed("/v1/api-keys", {"name": "deploy"}, name="other"),
    "POST /v1/webhook-endpoints": _fixed(
        "/v1/webhook-endpoints",
        {"name": "Alerts", "url": "https://hooks.example.com/", "events": ["credits.low"]},
        name="Other",
    ),
    "POST /v1/feedback": _fixed("/v1/feedback", {"category": "bug", "message": "It fails."}, message="It fails again."),
    "POST /v1/code-audit/repositories/{repositoryId}/links": _link,
    "POST /v1/api-keys/{keyId}/roll": _roll,
    ROTATION: _rotation,
    "POST /v1/code-audit/scans": _scan,
    COMPLETED: _items,
}


def stored() -> set[tuple[str, str]]:
    """Returns the keys of the stored items, without the stored response."""
    keys = {(item["pk"]["S"], item["sk"]["S"]) for item in table_dump()}
    return {key for key in keys if not key[0].startswith("IDEMPOTENCY#")}


def test_every_operation_is_tested_and_every_creation_documents_the_header():
    documented = {
        f"{operation.method} {operation.path}"
        for operation in operations()
        if "Idempotency-Key" in [field.alias for field in operation.route.dependant.header_params]
    }
    creating = {f"{it.method} {it.path}" for it in operations() if it.method == "POST" and it.route.status_code == 201}
    assert documented == set(CASES)
    assert creating - WITHOUT_THE_HEADER <= documented


class Client:
    """The owner of an organization, who sends the requests of an operation with one Idempotency-Key."""

    def __init__(self, operation: str, api: Api, world: World) -> None:
        self._api, self._method = api, operation.partition(" ")[0]
        self.company = world.company()
        self._path, *self._bodies = CASES[operation](world, self.company)
        self.success = next(it.route.status_code or 200 for it in operations() if f"{it.method} {it.path}" == operation)

    def send(self, number: int = 0, *, token: str | None = None, headers: dict[str, str] = KEY) -> Reply:
        """Sends the first request, or the other one."""
        body, token = self._bodies[number], token or self.company.owner.token
        return self._api.call(self._method, self._path, token, json_body=body, headers=headers)


@pytest.fixture
def client(operation: str, api: Api, world: World) -> Client:
    return Client(operation, api, world)


@pytest.mark.parametrize("operation", CASES)
class TestEach:
    def test_a_repetition_returns_the_same_and_writes_nothing(self, client: Client):
        first = client.send()
        before = stored()
        second = client.send()
        assert first.status == second.status == client.success
        assert first.text == second.text
        assert "idempotency-replayed" not in first.headers
        assert second.headers["idempotency-replayed"] == "true"
        assert stored() == before

    def test_a_malformed_idempotency_key_returns_400_and_writes_nothing(self, client: Client):
        before = stored()
        reply = client.send(headers={"Idempotency-Key": "k" * 256})
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert stored() == before

    def test_another_users_keys_are_independent(self, client: Client, world: World):
        admin = world.member(client.company, "admin")
        client.send()
        assert "idempotency-replayed" not in client.send(1, token=admin.token).headers


@pytest.mark.parametrize("operation", [name for name in CASES if name != ROTATION])
def test_another_body_returns_400_and_writes_nothing(client: Client):
    client.send()
    before = stored()
    reply = client.send(1)
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert stored() == before


@pytest.mark.parametrize("operation", [name for name in CASES if name != COMPLETED])
class TestDeaths:
    @pytest.mark.parametrize("death", [("TransactWriteItems", True), ("UpdateItem", False)])
    def test_after_a_crash_following_the_effect_no_repetition_creates_again(
        self, death: tuple[str, bool], client: Client, now: FakeClock
    ):
        died_at, applied = death
        with dies_at(died_at, applied=applied) as interrupted:
            assert client.send().status == 500
        assert interrupted
        before = stored()
        now.advance(LEASE_SECONDS + 1)
        reply = client.send()
        assert (reply.status, reply.error["details"]) == (409, {"reason": "answer_lost"})
        assert stored() == before

    def test_after_a_crash_before_the_effect_a_repetition_creates(self, client: Client, now: FakeClock):
        with dies_at("TransactWriteItems", applied=False):
            assert client.send().status == 500
        now.advance(LEASE_SECONDS + 1)
        assert client.send(1).status == client.success

    def test_an_attempt_that_outlives_its_lease_has_no_effect(self, client: Client):
        def record() -> dict[str, Any]:
            (found,) = [it for it in table_dump() if it["pk"]["S"].startswith("IDEMPOTENCY#")]
            return found

        def take_over() -> None:
            key = Key(record()["pk"]["S"], record()["sk"]["S"])
            table.update(Update(key, "SET #attempt = :another", None, {"another": "another"}), PREPARED)

        before = stored()
        with before_the_transaction(table.client, take_over):
            reply = client.send()
        assert (reply.status, reply.error["details"]) == (409, {"reason": "in_flight"})
        assert stored() == before
        assert record()["attempt"]["S"] == "another"


def test_a_taken_slug_leaves_the_idempotency_key_usable(api: Api, world: World):
    person = world.person()
    taken = world.company().slug
    refused = api.post("/v1/organizations", person.token, json_body={"name": "N", "slug": taken}, headers=KEY)
    assert refused.code == "CONFLICT"
    made = api.post("/v1/organizations", person.token, json_body={"name": "N", "slug": "another-slug"}, headers=KEY)
    assert made.status == 201


def test_an_organizations_api_keys_share_idempotency_keys(api: Api, world: World):
    company = world.company()
    body = CASES["POST /v1/projects"](world, company).body
    first, second = (api.post("/v1/projects", world.key(company), json_body=body, headers=KEY) for _ in range(2))
    assert (first.status, first.text) == (201, second.text)
    assert second.headers["idempotency-replayed"] == "true"

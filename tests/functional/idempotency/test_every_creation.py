"""Every operation that creates something accepts Idempotency-Key, and every one that accepts it honors it."""

import pytest

from controlplane.api_keys import store as api_keys
from controlplane.platform.table.idempotency import LEASE_SECONDS
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Update, table
from tests.functional.projects.builders import make_project
from tests.support.calls import before_the_transaction
from tests.support.crashes import dies_at
from tests.support.endpoints import endpoint
from tests.support.operations import operations
from tests.support.table import PREPARED
from tests.support.world import table_dump

pytestmark = pytest.mark.usefixtures("sqs")

KEY = {"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"}
# A device has no caller yet to bind a key to, and an issue is identified by its inbox item.
WITHOUT_THE_HEADER = {"POST /v1/auth/device/code", "POST /v1/inbox/{itemId}/github-issue"}
# Repeating it completes it, because each of its items recognizes a change that it has.
COMPLETED = "PATCH /v1/inbox"
# It takes no field, and ignores unknown ones.
ROTATION = "POST /v1/webhook-endpoints/{webhookId}/rotate-secret"


# The body of each request, and what another one with the same Idempotency-Key has instead.
BODIES = {
    "POST /v1/organizations": ({"name": "New Company"}, {"name": "Another Company"}),
    "POST /v1/invitations": ({"email": "grace@example.com", "role": "member"}, {"role": "admin"}),
    "POST /v1/projects": ({"name": "Shop", "region": "eu-central", "websites": ["a.example.com"]}, {"name": "Other"}),
    "POST /v1/api-keys": ({"name": "deploy"}, {"name": "other"}),
    "POST /v1/webhook-endpoints": (
        {"name": "Alerts", "url": "https://hooks.example.com/", "events": ["credits.low"]},
        {"name": "Other"},
    ),
    "POST /v1/feedback": ({"category": "bug", "message": "It fails."}, {"message": "It fails again."}),
}


def link(world, company):
    repository = world.connected_repository(company, linked=False)
    body = {"projectId": make_project(company).project_id, "rootDirectory": "web"}
    return f"/v1/code-audit/repositories/{repository.repository_id}/links", body, {"rootDirectory": "api"}


def roll(world, company):
    made = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
    return f"/v1/api-keys/{made.item.key_id}/roll", {}, {"gracePeriodSeconds": 60}


def rotate(world, company):
    return f"/v1/webhook-endpoints/{endpoint(company).webhook_id}/rotate-secret", {}, {}


def start_scan(world, company):
    first, other = (world.connected_repository(company).repository_id for _ in range(2))
    return "/v1/code-audit/scans", {"repositoryId": first}, {"repositoryId": other}


def change_items(world, company):
    found = [world.finding(company) for _ in range(2)]
    accepted, dismissed = (
        {"items": [{"id": item.item_id, "status": status, "version": item.version} for item in found]}
        for status in ("accepted", "dismissed")
    )
    return "/v1/inbox", accepted, dismissed


# These name what has to exist, so they also return the path.
PREPARED_REQUESTS = {
    "POST /v1/code-audit/repositories/{repositoryId}/links": link,
    "POST /v1/api-keys/{keyId}/roll": roll,
    ROTATION: rotate,
    "POST /v1/code-audit/scans": start_scan,
    COMPLETED: change_items,
}
CASES = [*BODIES, *PREPARED_REQUESTS]


def stored():
    """Returns the keys of the stored items, without the stored response."""
    keys = {(item["pk"]["S"], item["sk"]["S"]) for item in table_dump()}
    return {key for key in keys if not key[0].startswith("IDEMPOTENCY#")}


def test_every_operation_is_tested_and_every_creation_documents_the_header():
    documented = {
        it.name
        for it in operations()
        if "Idempotency-Key" in [field.alias for field in it.route.dependant.header_params]
    }
    creating = {it.name for it in operations() if it.method == "POST" and it.route.status_code == 201}
    assert documented == set(CASES)
    assert creating - WITHOUT_THE_HEADER <= documented


class Client:
    """The owner of a new organization, who sends the requests of an operation with one Idempotency-Key."""

    def __init__(self, operation, api, world):
        self._api, self.company = api, world.company()
        self._method, _, self._path = operation.partition(" ")
        if operation in BODIES:
            body, others = BODIES[operation]
        else:
            self._path, body, others = PREPARED_REQUESTS[operation](world, self.company)
        self._bodies = body, {**body, **others}
        self.success = next(it.route.status_code or 200 for it in operations() if it.name == operation)

    def send(self, number=0, token=None, key=KEY["Idempotency-Key"]):
        """Sends the first request, or the other one."""
        headers, token = {"Idempotency-Key": key}, token or self.company.owner.token
        return self._api.call(self._method, self._path, token, json_body=self._bodies[number], headers=headers)


@pytest.fixture
def client(operation, api, world):
    return Client(operation, api, world)


@pytest.mark.parametrize("operation", CASES)
def test_a_repetition_by_the_same_user_returns_the_same_and_writes_nothing(operation, client, world):
    before = stored()
    malformed = client.send(key="k" * 256)
    assert (malformed.status, malformed.code, stored()) == (400, "INVALID_PAYLOAD", before)
    first = client.send()
    before = stored()
    second, other = client.send(), client.send(1)
    assert (first.status, second.status, second.text) == (client.success, client.success, first.text)
    assert [it.headers.get("idempotency-replayed") for it in (first, second)] == [None, "true"]
    assert other.status == (200 if operation == ROTATION else 400)
    assert stored() == before
    admin = world.member(client.company, "admin")
    assert "idempotency-replayed" not in client.send(1, admin.token).headers


@pytest.mark.parametrize("operation", [name for name in CASES if name != COMPLETED])
class TestDeaths:
    @pytest.mark.parametrize("death", [("TransactWriteItems", True), ("UpdateItem", False)])
    def test_after_a_crash_following_the_effect_no_repetition_creates_again(self, death, client, now):
        died_at, applied = death
        with dies_at(died_at, applied=applied) as interrupted:
            assert client.send().status == 500
        assert interrupted
        before = stored()
        for seconds, reason in ((LEASE_SECONDS, "in_flight"), (1, "answer_lost")):
            now.advance(seconds)
            reply = client.send()
            assert (reply.status, reply.code, reply.error["details"]) == (409, "CONFLICT", {"reason": reason})
        assert stored() == before

    def test_after_a_crash_before_the_effect_a_repetition_creates_once_the_lease_ends(self, client, now):
        with dies_at("TransactWriteItems", applied=False):
            assert client.send().status == 500
        now.advance(LEASE_SECONDS)
        assert client.send().error["details"] == {"reason": "in_flight"}
        now.advance(1)
        assert client.send(1).status == client.success

    def test_an_attempt_that_outlives_its_lease_has_no_effect(self, client):
        def record():
            (found,) = [it for it in table_dump() if it["pk"]["S"].startswith("IDEMPOTENCY#")]
            return found

        def take_over():
            key = Key(record()["pk"]["S"], record()["sk"]["S"])
            table.update(Update(key, "SET #attempt = :another", None, {"another": "another"}), PREPARED)

        before = stored()
        with before_the_transaction(table.client, take_over):
            reply = client.send()
        assert (reply.status, reply.error["details"]) == (409, {"reason": "in_flight"})
        assert (stored(), record()["attempt"]["S"]) == (before, "another")

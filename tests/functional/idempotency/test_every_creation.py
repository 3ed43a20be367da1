"""Every operation that creates something accepts Idempotency-Key, and every one that accepts it honors it."""

import pytest

from controlplane.platform.table.idempotency import LEASE_SECONDS
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Update, table
from tests.support.calls import before_the_transaction
from tests.support.crashes import dies_at
from tests.support.operations import operations
from tests.support.subject import Subject, filled
from tests.support.table import PREPARED
from tests.support.valid_requests import USUAL
from tests.support.world import table_dump

pytestmark = pytest.mark.usefixtures("sqs")

KEY = "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"
# A device has no caller yet to bind a key to, and an issue is identified by its inbox item.
WITHOUT_THE_HEADER = {"createDeviceCode", "createGithubIssue"}
# Repeating it completes it, because each of its items recognizes a change that it has.
COMPLETED = "updateInboxItems"
# They take no field, and ignore unknown ones.
ROTATION, START = "rotateWebhookSecret", "startAuditRun"
CASES = [
    "createOrganization",
    "createInvitation",
    "createProject",
    "createApiKey",
    "createWebhookEndpoint",
    "createComment",
    "createFeedback",
    "createLink",
    "rollApiKey",
    ROTATION,
    "startScan",
    "createAudit",
    START,
    COMPLETED,
]


def stored():
    """Returns the keys of the stored items, without the stored response."""
    keys = {(item["pk"]["S"], item["sk"]["S"]) for item in table_dump()}
    return {key for key in keys if not key[0].startswith("IDEMPOTENCY#")}


def test_every_operation_is_tested_and_every_creation_documents_the_header():
    documented = {
        it.route.operation_id
        for it in operations()
        if "Idempotency-Key" in [field.alias for field in it.route.dependant.header_params]
    }
    creating = {it.route.operation_id for it in operations() if it.method == "POST" and it.route.status_code == 201}
    assert documented == set(CASES)
    assert creating - WITHOUT_THE_HEADER <= documented


class Client:
    """The owner of a new organization, who sends the requests of an operation with one Idempotency-Key."""

    def __init__(self, operation, api, world):
        case, subject, second = USUAL[operation], Subject(world, api), Subject(world, api)
        first, self.company = case.prepared(subject), subject.company
        second.company = self.company
        other = first._replace(body={**first.body, **filled(case.other, subject)})
        # The third is about another key, endpoint, or repository, if it is about one.
        self._requests = first, other, case.prepared(second) if "{" in case.operation.path else other
        self.success = case.operation.route.status_code or 200

    def send(self, number=0, token=None, key=KEY):
        """Sends one of the requests."""
        return self._requests[number].send(token, **{"Idempotency-Key": key})


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
    second, other, elsewhere = client.send(), client.send(1), client.send(2)
    assert (first.status, second.status, second.text) == (client.success, client.success, first.text)
    assert [it.headers.get("idempotency-replayed") for it in (first, second)] == [None, "true"]
    assert (other.status, elsewhere.status) == (client.success if operation in {ROTATION, START} else 400, 400)
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

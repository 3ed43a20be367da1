"""The Idempotency-Key header: a repeated creation returns the first response and creates nothing."""

import json

import pytest

from controlplane.access import idempotency
from controlplane.access.access import Access
from controlplane.access.authentication import Principal
from controlplane.access.idempotency import Record
from controlplane.billing import store as billing
from controlplane.platform.http.envelope import Wire
from controlplane.platform.table import idempotency as store
from controlplane.platform.table import keys
from controlplane.platform.table.rate import Counted
from controlplane.platform.table.table import Check, LegFailed, Update, table
from tests.support.calls import intercepted, is_update_of, refused
from tests.support.cold_start import loaded_by
from tests.support.crashes import dies_at
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.rings import SWITCHED, use_ring
from tests.support.table import PREPARED
from tests.support.world import table_dump

KEY = "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"
DAY = 24 * 3600
REPLAYED = {"Idempotency-Replayed": "true"}


class Keys:
    """An organization whose owner creates and rolls API keys, with an Idempotency-Key unless it is None."""

    def __init__(self, api, world, plan="pro"):
        self.api, self.world, self.company = api, world, world.company(plan)
        self.id, self.owner = self.company.organization_id, self.company.owner

    def send(self, method, path="", key=None, body=None, who=None):
        headers = {} if key is None else {"Idempotency-Key": key}
        target = f"/v1/api-keys{path}?organizationId={self.id}"
        return self.api.call(method, target, who or self.owner.token, json_body=body, headers=headers)

    def create(self, key=KEY, name="deploy", who=None):
        return self.send("POST", "", key, {"name": name}, who)

    def roll(self, made, key=KEY):
        return self.send("POST", f"/{made['keyId']}/roll", key)

    def ids(self):
        return [shown["keyId"] for shown in self.send("GET").data]


@pytest.fixture
def acme(api, world):
    return Keys(api, world)


def records():
    return [item for item in table_dump() if item["pk"]["S"].startswith("IDEMPOTENCY#")]


def key_of(record):
    return keys.Key(record["pk"]["S"], record["sk"]["S"])


def is_claim(call):
    return call.operation == "PutItem" and call.parameters["Item"]["pk"]["S"].startswith("IDEMPOTENCY#")


def test_the_same_request_returns_identical_bytes_and_says_so(acme, api):
    replies = [acme.create() for _ in range(3)]
    first = replies[0]
    assert {(it.status, it.text, it.headers["cache-control"]) for it in replies} == {(201, first.text, "no-store")}
    assert [it.headers.get("idempotency-replayed") for it in replies] == [None, "true", "true"]
    assert [it.headers["x-ratelimit-remaining"] for it in replies] == ["599", "598", "597"]
    assert acme.create(name="  deploy ").text == first.text, "an equivalent body is the same request"
    assert acme.ids() == [first.data["keyId"]]
    assert api.get("/v1/me", replies[2].data["key"]).status == 200


def test_a_response_is_replayed_for_24_hours_also_after_the_deletion(acme, world, now):
    token = world.token(acme.owner.user_id, lifetime_seconds=3 * DAY)
    first = acme.create(who=token)
    (record,) = records()
    assert int(record["expiresAt"]["N"]) == int(now.seconds) + DAY
    now.advance(DAY - 1)
    assert acme.send("DELETE", f"/{first.data['keyId']}", who=token).status == 200
    replay = acme.create(who=token)
    assert (replay.status, replay.text, replay.headers["idempotency-replayed"]) == (201, first.text, "true")
    now.advance(1)
    later = acme.create(who=token)
    assert (later.data["keyId"] != first.data["keyId"], "idempotency-replayed" in later.headers) == (True, False)


def test_each_idempotency_key_is_another_request_with_its_own_secret_and_partition(acme):
    # All printable characters except space and the comma, which would be a second value.
    printable = "".join(map(chr, range(0x21, 0x7F))).replace(",", "")
    named = (KEY, KEY + "x", KEY.upper(), "1", " ", "k" * 255, printable)
    made = [acme.create(key) for key in named]
    assert [len({it.data[name] for it in made}) for name in ("keyId", "key")] == [7, 7]
    assert len({record["pk"]["S"] for record in records()}) == 7
    assert [acme.create(key).text for key in named] == [it.text for it in made]
    assert acme.create(None).data["keyId"] != acme.create(None).data["keyId"]
    assert len(records()) == 7


def test_idempotency_keys_are_bound_to_the_user_the_organization_and_the_operation(acme, api, world):
    first = acme.create()
    assert acme.create(who=world.token(acme.owner.user_id)).text == first.text
    admin, other = world.member(acme.company, "admin"), Keys(api, world)
    other.owner = acme.owner
    world.member(other.company, "owner", acme.owner)
    made = [acme.create(who=admin.token), other.create(), acme.roll(first.data)]
    assert [it.headers.get("idempotency-replayed") for it in made] == [None] * 3
    world.leave(acme.company, admin)
    assert acme.create(who=admin.token).code == "FORBIDDEN"
    # API keys of an organization share them.
    body, headers = {"name": "Shop", "region": "eu-central"}, {"Idempotency-Key": KEY}
    first, second = (
        api.post("/v1/projects", world.key(acme.company), json_body=body, headers=headers) for _ in range(2)
    )
    assert (first.status, first.text, second.headers["idempotency-replayed"]) == (201, second.text, "true")


def test_another_body_returns_400_also_while_the_first_request_runs(acme):
    with dies_at("TransactWriteItems", applied=False):
        assert acme.create().status == 500
    refused = acme.create(name="other")
    assert (refused.status, refused.code) == (400, "INVALID_PAYLOAD")
    (problem,) = refused.error["details"]
    assert (problem["path"], problem["code"]) == (["Idempotency-Key"], "idempotency_key_reused")
    running = acme.create()
    assert (running.status, running.error["details"]) == (409, {"reason": "in_flight"})
    assert (running.headers["retry-after"], acme.ids()) == ("1", [])


@each("key", ["", "k" * 256, "tab\there", "nul\0", "del\x7f", "é", "ключ", "🔑", "line\nbreak"], ids=ascii)
def test_returns_400_unless_the_key_is_1_to_255_printable_ascii_characters(key, acme):
    reply = acme.create(key)
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert reply.error["details"][0]["path"] == ["Idempotency-Key"]
    assert (acme.ids(), records()) == ([], [])


def test_a_refusal_leaves_the_key_and_its_secret_usable(api, world):
    acme = Keys(api, world, "free")
    assert (acme.create(name="one").code, records()) == ("PLAN_REQUIRED", [])
    billing.change_plan(acme.id, "pro")
    assert acme.create(name="").status == 400
    assert acme.create(who=world.member(acme.company).token).status == 403
    assert records() == []
    first = acme.create(name="two")
    assert (first.status, acme.create(name="two").text) == (201, first.text)


@each(
    ("fails", "code", "status"),
    [
        (is_claim, "ThrottlingException", 429),
        (lambda call: call.operation == "TransactWriteItems", "ValidationException", 500),
    ],
)
def test_a_failure_of_the_table_leaves_the_key_usable(fails, code, status, api, world):
    acme = Keys(api, world)
    with refused(table.client, fails, code):
        assert acme.create().status == status
    assert (acme.create().status, len(acme.ids())) == (201, 1)


def test_a_crash_after_the_response_was_stored_is_replayed_and_a_retry_of_the_sdk_is_no_conflict(acme):
    def applied_twice(call, proceed):
        if is_claim(call):
            proceed()
        return proceed()

    with intercepted(table.client, applied_twice):
        assert acme.create("another").status == 201
    with dies_at("UpdateItem", applied=True):
        assert acme.create().status == 500
    assert acme.create().headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize("code", ["ThrottlingException", "ValidationException"])
def test_a_response_that_cant_be_stored_is_still_returned(code, acme, api, now):
    with refused(table.client, is_update_of("IDEMPOTENCY#"), code):
        reply = acme.create()
    assert (reply.status, api.get("/v1/me", reply.data["key"]).status) == (201, 200)
    now.advance(store.LEASE_SECONDS + 1)
    assert acme.create().error["details"] == {"reason": "answer_lost"}
    assert acme.create(name="other").code == "INVALID_PAYLOAD"


def test_neither_secret_nor_idempotency_key_is_in_table_or_log(acme):
    with captured_logs() as logs:
        made = acme.create().data
        acme.create()
        acme.create(name="other")
        rolled = acme.roll(made).data
    (content,) = [
        found
        for it in records()
        if (found := json.loads(json.loads(it["data"]["S"])["content"]))["keyId"] == made["keyId"]
    ]
    assert (content, len(records())) == ({**made, "key": None}, 2)
    assert "POST /v1/api-keys" in logs.getvalue()
    for text in (json.dumps(table_dump()), logs.getvalue()):
        for secret in (made["key"], made["key"][11:], rolled["key"], rolled["key"][11:], KEY):
            assert secret not in text


def test_a_response_moved_to_another_record_reveals_no_secret(acme):
    first = acme.create("a").data["key"]
    (record,) = records()
    second = acme.create("b").data["key"]
    (moved,) = (other for other in records() if other["pk"] != record["pk"])
    stolen = {"stolen": record["data"]["S"]}
    table.update(Update(key_of(moved), "SET #data = :stolen", None, stolen), PREPARED)
    assert acme.create("b").data["key"] not in {first, second}


def test_the_record_cant_be_found_from_the_table_and_the_signing_key_alone(acme, monkeypatch):
    acme.create()
    use_ring(monkeypatch, SWITCHED)
    assert "idempotency-replayed" not in acme.create().headers


# `idempotent` for operations whose responses contain no secret.


class Made(Wire):
    name: str
    note: str | None = None


def run(effect, payload=None, key_id="key_1"):
    access = Access(Principal("api_key", (), key_id=key_id, organization_id="org_1"), Counted(1, 1, 1))
    return idempotency.idempotent(access, "createThing", "k", payload, effect)


def test_a_response_without_a_secret_is_stored_as_returned_for_the_organization():
    times, made = [], Made(name='ä "\u2028 🔑 \x1f</script>', note=None)

    def effect(legs):
        times.append(1)
        table.transact(dict(legs), PREPARED)
        return made

    first = run(effect, {"b": 1, "a": [2]})
    second = run(effect, {"a": [2], "b": 1}, key_id="key_2")
    assert (first.content, first.headers, len(times)) == (made, {}, 1)
    assert (second.content, second.headers) == ({"name": made.name, "note": None}, REPLAYED)


def test_another_failed_leg_is_the_operations_and_frees_the_key():
    def effect(legs):
        table.transact({**legs, "thing": Check(keys.user("usr_x"), "attribute_exists(pk)")}, PREPARED)

    with pytest.raises(LegFailed, match="thing"):
        run(effect)
    assert records() == []


def test_libraries_that_no_creation_needs_are_not_imported_and_a_records_repr_has_no_seed():
    late = {"aws_lambda_powertools.utilities.idempotency", "cryptography", "boto3"}
    assert loaded_by("api_keys.app", late) == set()
    key = keys.idempotent_answer("a")
    assert "seed" not in repr(Record(key, {key: b"seed"}, "attempt"))

"""The Idempotency-Key header: a repeated creation returns the first response and creates nothing."""

import json

import pytest

from controlplane.http import idempotency
from controlplane.http.access import Access
from controlplane.http.authentication import Principal
from controlplane.http.envelope import Wire
from controlplane.http.replays import Record
from controlplane.store import billing, keys
from controlplane.store import idempotency as store
from controlplane.store.credentials import Counted
from controlplane.store.table import Check, ConditionFailed, LegFailed, Update, table
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
def org(api, world):
    return Keys(api, world)


def records():
    return [item for item in table_dump() if item["pk"]["S"].startswith("IDEMPOTENCY#")]


def key_of(record):
    return keys.Key(record["pk"]["S"], record["sk"]["S"])


def is_claim(call):
    return call.operation == "PutItem" and call.parameters["Item"]["pk"]["S"].startswith("IDEMPOTENCY#")


def test_the_same_request_returns_identical_bytes_and_says_so(org, api):
    replies = [org.create() for _ in range(3)]
    first = replies[0]
    assert {(it.status, it.text, it.headers["cache-control"]) for it in replies} == {(201, first.text, "no-store")}
    assert [it.headers.get("idempotency-replayed") for it in replies] == [None, "true", "true"]
    assert [it.headers["x-ratelimit-remaining"] for it in replies] == ["599", "598", "597"]
    assert org.create(name="  deploy ").text == first.text, "an equivalent body is the same request"
    assert org.ids() == [first.data["keyId"]]
    assert api.get("/v1/me", replies[2].data["key"]).status == 200


def test_a_roll_is_replayed_for_its_key_only(org):
    made = [org.create(None).data for _ in range(2)]
    first, second, other = org.roll(made[0]), org.roll(made[0]), org.roll(made[1])
    assert (first.status, second.status, second.text, other.status) == (200, 200, first.text, 400)
    assert second.headers["idempotency-replayed"] == "true"
    assert {*org.ids()} == {first.data["keyId"], made[1]["keyId"]}


def test_a_response_is_replayed_for_24_hours_also_after_the_deletion(org, world, now):
    token = world.token(org.owner.user_id, lifetime_seconds=3 * DAY)
    first = org.create(who=token)
    (record,) = records()
    assert int(record["expiresAt"]["N"]) == int(now.seconds) + DAY
    now.advance(DAY - 1)
    assert org.send("DELETE", f"/{first.data['keyId']}", who=token).status == 200
    replay = org.create(who=token)
    assert (replay.status, replay.text, replay.headers["idempotency-replayed"]) == (201, first.text, "true")
    now.advance(1)
    later = org.create(who=token)
    assert (later.data["keyId"] != first.data["keyId"], "idempotency-replayed" in later.headers) == (True, False)


def test_each_idempotency_key_is_another_request_with_its_own_secret_and_partition(org):
    made = [org.create(key).data for key in (KEY, KEY + "x", KEY.upper(), "1", " ")]
    assert [len({it[name] for it in made}) for name in ("keyId", "key")] == [5, 5]
    assert len({record["pk"]["S"] for record in records()}) == 5
    assert org.create(None).data["keyId"] != org.create(None).data["keyId"]
    assert len(records()) == 5


def test_idempotency_keys_are_bound_to_the_user_the_organization_and_the_operation(org, api, world):
    first = org.create()
    assert org.create(who=world.token(org.owner.user_id)).text == first.text
    admin, other = world.member(org.company, "admin"), Keys(api, world)
    other.owner = org.owner
    world.member(other.company, "owner", org.owner)
    made = [org.create(who=admin.token), other.create(), org.roll(first.data)]
    assert [it.headers.get("idempotency-replayed") for it in made] == [None] * 3
    world.leave(org.company, admin)
    assert org.create(who=admin.token).code == "FORBIDDEN"


def test_api_keys_of_an_organization_share_idempotency_keys(api, world, org):
    body = {"name": "Shop", "region": "eu-central", "websites": ["shop.example.com"]}
    first, second = (
        api.post("/v1/projects", world.key(org.company), json_body=body, headers={"Idempotency-Key": KEY})
        for _ in range(2)
    )
    assert (first.status, first.text, second.headers["idempotency-replayed"]) == (201, second.text, "true")


def test_another_body_returns_400_also_while_the_first_request_runs(org):
    with dies_at("TransactWriteItems", applied=False):
        assert org.create().status == 500
    refused = org.create(name="other")
    assert (refused.status, refused.code) == (400, "INVALID_PAYLOAD")
    (problem,) = refused.error["details"]
    assert (problem["path"], problem["code"]) == (["Idempotency-Key"], "idempotency_key_reused")
    running = org.create()
    assert (running.status, running.error["details"]) == (409, {"reason": "in_flight"})
    assert (running.headers["retry-after"], org.ids()) == ("1", [])


@each("key", ["", "k" * 256, "tab\there", "nul\0", "del\x7f", "é", "ключ", "🔑", "line\nbreak"], ids=ascii)
def test_returns_400_unless_the_key_is_1_to_255_printable_ascii_characters(key, org):
    reply = org.create(key)
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert reply.error["details"][0]["path"] == ["Idempotency-Key"]
    assert (org.ids(), records()) == ([], [])


# All printable characters except space and the comma, which would be a second value.
@each("key", ["k", "k" * 255, "".join(map(chr, range(0x21, 0x7F))).replace(",", "")], ids=["1", "255", "all"])
def test_accepts_keys_at_both_length_limits(key, org):
    first, second = org.create(key), org.create(key)
    assert (first.status, first.text) == (201, second.text)


def test_a_refusal_leaves_the_key_and_its_secret_usable(api, world):
    org = Keys(api, world, "free")
    assert (org.create(name="one").code, records()) == ("PLAN_REQUIRED", [])
    billing.change_plan(org.id, "pro")
    assert org.create(name="").status == 400
    assert org.create(who=world.member(org.company).token).status == 403
    assert records() == []
    first = org.create(name="two")
    assert (first.status, org.create(name="two").text) == (201, first.text)


@each(
    ("fails", "code", "status"),
    [
        (is_claim, "ThrottlingException", 429),
        (lambda call: call.operation == "TransactWriteItems", "ValidationException", 500),
    ],
)
def test_a_failure_of_the_table_leaves_the_key_usable(fails, code, status, api, world):
    org = Keys(api, world)
    with refused(table.client, fails, code):
        assert org.create().status == status
    assert (org.create().status, len(org.ids())) == (201, 1)


def test_a_crash_after_the_response_was_stored_is_replayed(org):
    with dies_at("UpdateItem", applied=True):
        assert org.create().status == 500
    assert org.create().headers["idempotency-replayed"] == "true"


def test_an_attempt_that_lost_the_key_stores_no_response(org):
    org.create()
    written = table_dump()
    (record,) = records()
    with pytest.raises(ConditionFailed):
        store.complete_attempt(key_of(record), "another", "{}")
    assert table_dump() == written


@pytest.mark.parametrize("code", ["ThrottlingException", "ValidationException"])
def test_a_response_that_cant_be_stored_is_still_returned(code, org, api, now):
    with refused(table.client, is_update_of("IDEMPOTENCY#"), code):
        reply = org.create()
    assert (reply.status, api.get("/v1/me", reply.data["key"]).status) == (201, 200)
    now.advance(store.LEASE_SECONDS + 1)
    assert org.create().error["details"] == {"reason": "answer_lost"}
    assert org.create(name="other").code == "INVALID_PAYLOAD"


def test_the_sdks_own_retry_of_claiming_the_key_is_no_conflict(org):
    def applied_twice(call, proceed):
        if is_claim(call):
            proceed()
        return proceed()

    with intercepted(table.client, applied_twice):
        assert org.create().status == 201


def test_neither_secret_nor_idempotency_key_is_in_table_or_log(org):
    with captured_logs() as logs:
        made = org.create().data
        org.create()
        org.create(name="other")
        rolled = org.roll(made).data
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


def test_a_response_moved_to_another_record_reveals_no_secret(org):
    first = org.create("a").data["key"]
    (record,) = records()
    second = org.create("b").data["key"]
    (moved,) = (other for other in records() if other["pk"] != record["pk"])
    stolen = {"stolen": record["data"]["S"]}
    table.update(Update(key_of(moved), "SET #data = :stolen", None, stolen), PREPARED)
    assert org.create("b").data["key"] not in {first, second}


def test_the_record_cant_be_found_from_the_table_and_the_signing_key_alone(org, monkeypatch):
    org.create()
    use_ring(monkeypatch, SWITCHED)
    assert "idempotency-replayed" not in org.create().headers


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


def test_the_replay_code_is_not_imported_before_a_request_needs_it():
    late = {"aws_lambda_powertools.utilities.idempotency", "cryptography", "boto3", "controlplane.http.replays"}
    assert loaded_by("api_keys.app", late) == set()


def test_a_records_repr_has_no_seed():
    key = keys.idempotent_answer("a")
    assert "seed" not in repr(Record(key, {key: b"seed"}, "attempt"))

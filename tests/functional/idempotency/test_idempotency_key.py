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
from controlplane.store.rate import Counted
from controlplane.store.table import Check, ConditionFailed, LegFailed, Update, table
from tests.support.api import Api
from tests.support.calls import Call, intercepted, is_update_of, refused
from tests.support.cold_start import loaded_by
from tests.support.crashes import dies_at
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.operations import operations
from tests.support.rings import SWITCHED, use_ring
from tests.support.table import PREPARED
from tests.support.world import Company, World, table_dump

KEY = "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"
DAY = 24 * 3600


def create(api: Api, company: Company, key: str | None = KEY, *, token: str | None = None, name: str = "deploy"):
    path = f"/v1/api-keys?organizationId={company.organization_id}"
    headers = {} if key is None else {"Idempotency-Key": key}
    return api.post(path, token or company.owner.token, json_body={"name": name}, headers=headers)


def listed(api: Api, company: Company) -> list[str]:
    reply = api.get(f"/v1/api-keys?organizationId={company.organization_id}", company.owner.token)
    return [shown["keyId"] for shown in reply.data]


def records() -> list[dict]:
    return [item for item in table_dump() if item["pk"]["S"].startswith("IDEMPOTENCY#")]


def die_during(operation: str, api: Api, company: Company, *, applied: bool) -> None:
    with dies_at(operation, applied=applied) as interrupted:
        assert create(api, company).status == 500
    assert interrupted


class TestReplayed:
    def test_the_same_request_returns_identical_bytes_and_says_so(self, api: Api, world: World):
        company = world.company()
        first, second, third = (create(api, company) for _ in range(3))
        assert first.status == second.status == third.status == 201
        assert first.text == second.text == third.text
        assert "idempotency-replayed" not in first.headers
        assert second.headers["idempotency-replayed"] == third.headers["idempotency-replayed"] == "true"
        assert second.headers["cache-control"] == "no-store"
        assert listed(api, company) == [first.data["keyId"]]

    def test_the_replayed_secret_works(self, api: Api, world: World):
        company = world.company()
        create(api, company)
        assert api.get("/v1/me", create(api, company).data["key"]).status == 200

    def test_a_replayed_rolls_secret_works(self, api: Api, world: World):
        company = world.company()
        path = f"/v1/api-keys/{create(api, company, None).data['keyId']}/roll"
        headers = {"Idempotency-Key": KEY}
        first, second = (api.post(path, company.owner.token, headers=headers) for _ in range(2))
        assert (first.status, first.text) == (second.status, second.text) == (200, second.text)
        assert second.headers["idempotency-replayed"] == "true"
        assert listed(api, company) == [first.data["keyId"]]

    def test_equivalent_bodies_are_the_same_request(self, api: Api, world: World):
        company = world.company()
        first = create(api, company, name="deploy")
        assert create(api, company, name="  deploy ").text == first.text

    def test_a_replay_counts_against_the_rate_limit(self, api: Api, world: World):
        company = world.company()
        remaining = [int(create(api, company).headers["x-ratelimit-remaining"]) for _ in range(2)]
        assert remaining == [599, 598]

    def test_a_response_is_replayed_for_24_hours(self, api: Api, world: World, now):
        company = world.company()
        token = world.token(company.owner.user_id, lifetime_seconds=3 * DAY)
        first = create(api, company, token=token)
        now.advance(DAY - 1)
        assert create(api, company, token=token).text == first.text
        now.advance(1)
        later = create(api, company, token=token)
        assert later.data["keyId"] != first.data["keyId"]
        assert "idempotency-replayed" not in later.headers

    def test_a_replay_after_the_deletion_returns_the_first_response(self, api: Api, world: World):
        company = world.company()
        first = create(api, company)
        assert api.delete(f"/v1/api-keys/{first.data['keyId']}", company.owner.token).status == 200
        replay = create(api, company)
        assert (replay.status, replay.text) == (201, first.text)
        assert replay.headers["idempotency-replayed"] == "true"
        assert listed(api, company) == []

    def test_a_record_expires_by_the_tables_ttl(self, api: Api, world: World, now):
        create(api, world.company())
        (record,) = records()
        assert int(record["expiresAt"]["N"]) == int(now.seconds) + DAY

    def test_without_the_header_each_request_creates(self, api: Api, world: World):
        company = world.company()
        assert create(api, company, None).data["keyId"] != create(api, company, None).data["keyId"]
        assert records() == []


class TestBinding:
    def test_another_idempotency_key_is_another_request(self, api: Api, world: World):
        company = world.company()
        made = {create(api, company, key).data["keyId"] for key in (KEY, KEY + "x", KEY.upper(), "1", " ")}
        assert len(made) == 5

    def test_another_caller_has_its_own_idempotency_keys(self, api: Api, world: World):
        company = world.company()
        admin = world.member(company, "admin")
        assert create(api, company).data["keyId"] != create(api, company, token=admin.token).data["keyId"]

    def test_another_token_of_the_same_user_is_the_same_caller(self, api: Api, world: World):
        company = world.company()
        token = world.token(company.owner.user_id)
        assert create(api, company).text == create(api, company, token=token).text

    def test_another_organization_has_its_own_idempotency_keys(self, api: Api, world: World):
        company = world.company()
        other = world.company(owner=company.owner)
        assert create(api, company).data["keyId"] != create(api, other).data["keyId"]

    def test_another_operation_has_its_own_idempotency_keys(self, api: Api, world: World):
        company = world.company()
        made = create(api, company).data
        path = f"/v1/api-keys/{made['keyId']}/roll"
        assert api.post(path, company.owner.token, headers={"Idempotency-Key": KEY}).status == 200

    def test_records_are_in_partitions_of_their_own(self, api: Api, world: World):
        company = world.company()
        for key in ("a", "b", "c"):
            create(api, company, key)
        assert len({record["pk"]["S"] for record in records()}) == 3

    def test_a_caller_who_lost_the_role_gets_no_replay(self, api: Api, world: World):
        company = world.company()
        admin = world.member(company, "admin")
        create(api, company, token=admin.token)
        world.leave(company, admin)
        assert create(api, company, token=admin.token).code == "FORBIDDEN"


class Test400:
    def test_returns_400_for_another_body(self, api: Api, world: World):
        company = world.company()
        first = create(api, company, name="deploy")
        reply = create(api, company, name="other")
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        (problem,) = reply.error["details"]
        assert (problem["path"], problem["code"]) == (["Idempotency-Key"], "idempotency_key_reused")
        assert listed(api, company) == [first.data["keyId"]]
        assert create(api, company, name="deploy").text == first.text

    def test_returns_400_for_rolling_another_api_key(self, api: Api, world: World):
        company = world.company()
        ids = [create(api, company, None).data["keyId"] for _ in range(2)]
        headers = {"Idempotency-Key": KEY}
        statuses = [api.post(f"/v1/api-keys/{i}/roll", company.owner.token, headers=headers).status for i in ids]
        assert statuses == [200, 400]

    @each("key", ["", "k" * 256, "tab\there", "nul\0", "del\x7f", "é", "ключ", "🔑", "line\nbreak"], ids=ascii)
    def test_returns_400_unless_the_key_is_1_to_255_printable_ascii_characters(self, key, api: Api, world: World):
        company = world.company()
        reply = create(api, company, key)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert reply.error["details"][0]["path"] == ["Idempotency-Key"]
        assert listed(api, company) == []
        assert records() == []

    # All printable characters except space and the comma, which would be a second value.
    @pytest.mark.parametrize(
        "key", ["k", "k" * 255, "".join(map(chr, range(0x21, 0x7F))).replace(",", "")], ids=["1", "255", "all"]
    )
    def test_accepts_keys_at_both_length_limits(self, key, api: Api, world: World):
        company = world.company()
        first, second = create(api, company, key), create(api, company, key)
        assert (first.status, first.text) == (201, second.text)


class TestRefusalsAreNotKept:
    def test_a_refusal_leaves_the_key_usable_even_with_another_body(self, api: Api, world: World):
        company = world.company("free")
        assert create(api, company, name="one").code == "PLAN_REQUIRED"
        assert records() == []
        billing.change_plan(company.organization_id, "pro")
        assert create(api, company, name="two").status == 201

    def test_invalid_bodies_and_missing_roles_are_refused_before_the_key_is_used(self, api: Api, world: World):
        company = world.company()
        assert create(api, company, name="").status == 400
        assert create(api, company, token=world.member(company).token).status == 403
        assert records() == []

    def test_a_throttled_table_leaves_the_key_usable(self, api: Api, world: World):
        company = world.company()

        def claims(call: Call) -> bool:
            return call.operation == "PutItem" and call.parameters["Item"]["pk"]["S"].startswith("IDEMPOTENCY#")

        with refused(table.client, claims, "ThrottlingException"):
            reply = create(api, company)
        assert (reply.status, reply.code) == (429, "RATE_LIMITED")
        assert create(api, company).status == 201

    def test_an_internal_error_leaves_the_key_usable(self, api: Api, world: World):
        company = world.company()
        with refused(table.client, lambda call: call.operation == "TransactWriteItems", "ValidationException"):
            assert create(api, company).status == 500
        assert create(api, company).status == 201
        assert len(listed(api, company)) == 1


class Test409:
    def test_returns_409_while_the_first_request_runs(self, api: Api, world: World, now):
        company = world.company()
        die_during("TransactWriteItems", api, company, applied=False)
        reply = create(api, company)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"reason": "in_flight"}
        assert reply.headers["retry-after"] == "1"
        assert listed(api, company) == []

    def test_returns_400_for_another_body_while_the_first_request_runs(self, api: Api, world: World):
        company = world.company()
        die_during("TransactWriteItems", api, company, applied=False)
        assert create(api, company, name="other").status == 400

    def test_a_crash_before_the_effect_frees_the_key_after_its_lease(self, api: Api, world: World, now):
        company = world.company()
        die_during("TransactWriteItems", api, company, applied=False)
        now.advance(store.LEASE_SECONDS)
        assert create(api, company).error["details"] == {"reason": "in_flight"}
        now.advance(1)
        assert create(api, company).status == 201
        assert len(listed(api, company)) == 1

    @pytest.mark.parametrize(("operation", "applied"), [("TransactWriteItems", True), ("UpdateItem", False)])
    def test_a_crash_after_the_effect_never_allows_a_second_creation(
        self, operation, applied, api: Api, world: World, now
    ):
        company = world.company()
        die_during(operation, api, company, applied=applied)
        now.advance(store.LEASE_SECONDS)
        assert create(api, company).error["details"] == {"reason": "in_flight"}
        now.advance(1)
        reply = create(api, company)
        assert (reply.status, reply.code, reply.error["details"]) == (409, "CONFLICT", {"reason": "answer_lost"})
        assert len(listed(api, company)) == 1

    def test_a_crash_after_the_response_was_stored_is_replayed(self, api: Api, world: World):
        company = world.company()
        die_during("UpdateItem", api, company, applied=True)
        assert create(api, company).headers["idempotency-replayed"] == "true"

    def test_an_attempt_that_lost_the_key_stores_no_response(self, api: Api, world: World):
        create(api, world.company())
        written = table_dump()
        (record,) = records()
        key = keys.Key(record["pk"]["S"], record["sk"]["S"])
        with pytest.raises(ConditionFailed):
            store.complete_attempt(key, "another", "{}")
        assert table_dump() == written

    @each("code", ["ThrottlingException", "ValidationException"])
    def test_a_response_that_cant_be_stored_is_still_returned(self, code: str, api: Api, world: World, now):
        company = world.company()
        with refused(table.client, is_update_of("IDEMPOTENCY#"), code):
            reply = create(api, company)
        assert reply.status == 201
        assert api.get("/v1/me", reply.data["key"]).status == 200
        now.advance(store.LEASE_SECONDS + 1)
        assert create(api, company).error["details"] == {"reason": "answer_lost"}
        assert create(api, company, name="other").code == "INVALID_PAYLOAD"


class TestLostResponses:
    def test_the_sdks_own_retry_of_claiming_the_key_is_no_conflict(self, api: Api, world: World):
        company = world.company()

        def applied_twice(call, proceed):
            if call.operation == "PutItem" and call.parameters["Item"]["pk"]["S"].startswith("IDEMPOTENCY#"):
                proceed()
            return proceed()

        with intercepted(table.client, applied_twice):
            assert create(api, company).status == 201


class TestSecrets:
    def test_neither_secret_nor_idempotency_key_is_in_table_or_log(self, api: Api, world: World):
        company = world.company()
        with captured_logs() as logs:
            made = create(api, company).data
            create(api, company)
            create(api, company, name="other")
            path = f"/v1/api-keys/{made['keyId']}/roll"
            rolled = api.post(path, company.owner.token, headers={"Idempotency-Key": KEY}).data
        stored = json.dumps(table_dump())
        assert len(records()) == 2
        assert made["keyId"] in logs.getvalue() or "POST /v1/api-keys" in logs.getvalue()
        for text in (stored, logs.getvalue()):
            for secret in (made["key"], made["key"][11:], rolled["key"], rolled["key"][11:], KEY):
                assert secret not in text

    def test_the_stored_response_has_null_instead_of_the_secret(self, api: Api, world: World):
        company = world.company()
        made = create(api, company, "a").data
        (record,) = records()
        content = json.loads(json.loads(record["data"]["S"])["content"])
        assert content == {**made, "key": None}

    def test_each_idempotency_key_derives_its_own_secret(self, api: Api, world: World):
        company = world.company()
        made = {create(api, company, key).data["key"] for key in ("a", "b", "c")}
        assert len(made) == 3

    def test_a_refused_attempt_leaves_its_secret_unused(self, api: Api, world: World):
        company = world.company("free")
        assert create(api, company).code == "PLAN_REQUIRED"
        billing.change_plan(company.organization_id, "pro")
        first = create(api, company).data["key"]
        assert create(api, company).data["key"] == first

    def test_a_response_moved_to_another_record_reveals_no_secret(self, api: Api, world: World):
        company = world.company()
        first = create(api, company, "a").data["key"]
        (record,) = records()
        second = create(api, company, "b").data["key"]
        (moved,) = (other for other in records() if other["pk"] != record["pk"])
        key = keys.Key(moved["pk"]["S"], moved["sk"]["S"])
        table.update(Update(key, "SET #data = :stolen", None, {"stolen": record["data"]["S"]}), PREPARED)
        assert create(api, company, "b").data["key"] not in (first, second)

    def test_the_record_cant_be_found_from_the_table_and_the_signing_key_alone(
        self, api: Api, world: World, monkeypatch
    ):
        company = world.company()
        create(api, company)
        use_ring(monkeypatch, SWITCHED)
        assert "idempotency-replayed" not in create(api, company).headers


class Made(Wire):
    name: str
    note: str | None = None


class TestWithoutSecret:
    """`idempotent` for operations whose responses contain no secret."""

    access: Access[None] = Access(Principal("api_key", (), key_id="key_1", organization_id="org_1"), Counted(1, 1, 1))

    def run(self, key: str | None, made: Made, payload=None, times: list | None = None):
        def effect(legs):
            (times if times is not None else []).append(1)
            if legs:
                table.transact(dict(legs), PREPARED)
            return made

        return idempotency.idempotent(self.access, "createThing", key, payload, effect)

    def test_the_response_is_stored_as_returned(self):
        times: list = []
        made = Made(name='ä "\u2028 🔑 \x1f</script>', note=None)
        first, second = (self.run("k", made, {"b": 1, "a": [2]}, times) for _ in range(2))
        assert len(times) == 1
        assert first.content is made
        assert first.headers == {}
        assert second.headers == {"Idempotency-Replayed": "true"}
        assert second.content == {"name": made.name, "note": None}

    def test_the_order_of_a_payloads_fields_does_not_matter(self):
        self.run("k", Made(name="x"), {"a": 1, "b": 2})
        assert self.run("k", Made(name="x"), {"b": 2, "a": 1}).headers == {"Idempotency-Replayed": "true"}

    def test_another_failed_leg_is_the_operations_and_frees_the_key(self):
        def effect(legs):
            table.transact({**legs, "thing": Check(keys.user("usr_x"), "attribute_exists(pk)")}, PREPARED)

        with pytest.raises(LegFailed, match="thing"):
            idempotency.idempotent(self.access, "createThing", "k", None, effect)
        assert records() == []

    def test_an_organizations_api_key_acts_as_the_organization(self):
        self.run("k", Made(name="x"))
        other: Access[None] = Access(
            Principal("api_key", (), key_id="key_2", organization_id="org_1"), Counted(1, 1, 1)
        )
        answer = idempotency.idempotent(other, "createThing", "k", None, lambda legs: Made(name="y"))
        assert answer.headers == {"Idempotency-Replayed": "true"}


class TestColdStart:
    def test_what_no_creation_needs_is_not_imported(self):
        late = {"aws_lambda_powertools.utilities.idempotency", "cryptography", "boto3"}
        assert loaded_by("api_keys.app", late) == set()


class TestDescription:
    @pytest.mark.parametrize("name", ["POST /v1/api-keys", "POST /v1/api-keys/{keyId}/roll"])
    def test_the_header_is_documented(self, name):
        (operation,) = (operation for operation in operations() if operation.name == name)
        described = [field.alias for field in operation.route.dependant.header_params]
        assert described == ["Idempotency-Key"]


def test_a_records_repr_has_no_seed():
    key = keys.idempotent_answer("a")
    assert "seed" not in repr(Record(key, {key: b"seed"}, "attempt"))

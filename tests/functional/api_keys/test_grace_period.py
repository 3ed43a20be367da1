"""POST /v1/api-keys/{keyId}/roll with gracePeriodSeconds: the old secret works until then, and its responses say so."""

from typing import Any

import pytest

from controlplane.core import clock, tokens
from controlplane.core.ids import KeyId
from controlplane.core.plans import KEYS_IN_GRACE_PER_ORGANIZATION
from controlplane.store import api_keys, billing, deletions, keys
from controlplane.store.table import Delete, table
from tests.support.api import Api, Reply
from tests.support.audit_log import all_entries
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import Company, World

DAY = 86_400
LIMITS: dict[str, Any] = {"scopes": ["api-keys.read", "inbox.read"], "allowedIps": ["198.51.100.0/24"]}


def create(api: Api, company: Company, **body: Any) -> dict[str, Any]:
    path = f"/v1/api-keys?organizationId={company.organization_id}"
    made: dict[str, Any] = api.post(path, company.owner.token, json_body={"name": "deploy", **body}).data
    return made


def roll(api: Api, company: Company, key: dict[str, Any], seconds: Any = DAY, **options: Any) -> Reply:
    path = f"/v1/api-keys/{key['keyId']}/roll?organizationId={company.organization_id}"
    # Tokens last an hour.
    return api.post(path, World().token(company.owner.user_id), json_body={"gracePeriodSeconds": seconds}, **options)


def statuses(api: Api, *made: dict[str, Any]) -> list[int]:
    return [api.get("/v1/me", key["key"]).status for key in made]


class Test200:
    def test_the_old_secret_works_until_the_last_moment_and_says_so(self, api: Api, world: World, now):
        company = world.company()
        old = create(api, company, **LIMITS, description="For releases.")
        new = roll(api, company, old).data
        assert {name: new[name] for name in (*LIMITS, "name", "description")} == {
            name: old[name] for name in (*LIMITS, "name", "description")
        }
        assert new["previous"] == {
            "keyId": old["keyId"],
            "start": old["start"],
            "expiresAt": "2026-03-05T05:06:07.000Z",
            "lastUsedAt": None,
        }
        now.advance(DAY - 0.001 - clock.now() % 1)
        reply = api.get("/v1/me", old["key"])
        assert reply.status == 200
        assert reply.headers["x-key-expires-at"] == "2026-03-05T05:06:07.000Z"
        assert reply.headers["x-key-replaced-by"] == new["keyId"]
        assert not {"x-key-expires-at", "x-key-replaced-by"} & {*api.get("/v1/me", new["key"]).headers}
        now.advance(0.001)
        assert statuses(api, old, new) == [401, 200]
        assert api.get(f"/v1/api-keys/{new['keyId']}", new["key"]).data["previous"] is None

    def test_the_old_secret_is_stored_for_another_day(self, api: Api, world: World):
        company = world.company()
        old = create(api, company)
        roll(api, company, old)
        stored = table.get(keys.key_secret(tokens.digest(old["key"])))
        assert stored is not None
        assert stored["expiresAt"] == stored["validUntil"] + DAY

    def test_the_old_key_is_not_listed_and_its_use_is_shown(self, api: Api, world: World, now):
        company = world.company()
        old = create(api, company)
        api.get("/v1/me", old["key"])
        new = roll(api, company, old).data
        now.advance(60)
        api.get("/v1/me", old["key"])
        (listed,) = api.get("/v1/api-keys", company.owner.token).data
        assert (listed["keyId"], listed["lastUsedAt"]) == (new["keyId"], None)
        assert listed["previous"]["lastUsedAt"] == "2026-03-04T05:07:00.000Z"

    def test_every_minute_in_which_the_old_secret_was_used_is_shown(self, api: Api, world: World, now):
        company = world.company()
        old = create(api, company)
        now.advance(30)  # 05:06:37
        api.get("/v1/me", old["key"])
        new = roll(api, company, old).data
        token = world.token(company.owner.user_id)

        def shown() -> list[str | None]:
            key = api.get(f"/v1/api-keys/{new['keyId']}", token).data
            renamed = api.patch(f"/v1/api-keys/{new['keyId']}", token, json_body={"description": clock.timestamp()})
            (listed,) = api.get("/v1/api-keys", token).data
            return [it["previous"]["lastUsedAt"] for it in (key, renamed.data, listed)]

        assert shown() == [None] * 3
        now.advance(10)
        api.get("/v1/me", old["key"])
        # In the minute of the roll, the roll itself is the earliest possible time.
        assert shown() == ["2026-03-04T05:06:37.000Z"] * 3
        for minute in ("2026-03-04T05:07", "2026-03-04T05:09"):
            now.advance(60 if minute.endswith("07") else 120)
            assert clock.timestamp().startswith(minute)
            api.get("/v1/me", old["key"])
            now.advance(3)
            api.get("/v1/me", old["key"])
            assert shown() == [f"{minute}:00.000Z"] * 3
            now.advance(-3)

    def test_the_old_secret_is_limited_by_the_keys_expiry(self, api: Api, world: World, now):
        company = world.company()
        old = create(api, company, expiresAt="2026-03-04T06:00:00Z")
        new = roll(api, company, old).data
        assert new["previous"]["expiresAt"] == new["expiresAt"] == "2026-03-04T06:00:00.000Z"
        now.advance(3600)
        assert statuses(api, old, new) == [401, 401]

    def test_a_stricter_key_is_stricter_with_the_old_secret(self, api: Api, world: World, now):
        company = world.company()
        old = create(api, company)
        new = roll(api, company, old).data
        stricter = {"scopes": ["inbox.read"], "expiresAt": "2026-03-04T06:00:00Z"}
        changed = api.patch(f"/v1/api-keys/{new['keyId']}", company.owner.token, json_body=stricter).data
        assert changed["previous"]["expiresAt"] == "2026-03-04T06:00:00.000Z"
        for key in (old, new):
            assert api.get("/v1/projects", key["key"]).code == "INSUFFICIENT_SCOPE"
        now.advance(3600)
        assert statuses(api, old, new) == [401, 401]

    def test_a_later_expiry_of_the_key_keeps_the_grace_period(self, api: Api, world: World, now):
        company = world.company()
        old = create(api, company)
        new = roll(api, company, old).data
        later = {"expiresAt": "2026-04-01T00:00:00Z"}
        changed = api.patch(f"/v1/api-keys/{new['keyId']}", company.owner.token, json_body=later).data
        assert changed["previous"]["expiresAt"] == "2026-03-05T05:06:07.000Z"
        now.advance(DAY)
        assert statuses(api, old, new) == [401, 200]

    def test_revoking_the_key_ends_both_secrets(self, api: Api, world: World):
        company = world.company()
        old = create(api, company)
        new = roll(api, company, old).data
        path = f"/v1/api-keys/{new['keyId']}?organizationId={company.organization_id}"
        assert api.delete(path, company.owner.token).status == 200
        assert statuses(api, old, new) == [401, 401]
        assert table.get(keys.key_secret(tokens.digest(old["key"]))) is None

    def test_a_whole_number_may_be_written_with_a_fraction(self, api: Api, world: World):
        company = world.company()
        old = create(api, company)
        assert roll(api, company, old, 60.0).status == 200
        assert statuses(api, old) == [200]

    def test_deleting_the_replaced_key_ends_only_its_secret(self, api: Api, world: World):
        company = world.company()
        old, other = create(api, company), create(api, company)
        new = roll(api, company, old).data
        before = table.get(keys.organization(company.organization_id))
        path = f"/v1/api-keys/{old['keyId']}"
        dry = api.delete(f"{path}?dryRun=true", company.owner.token)
        assert (dry.status, statuses(api, old)) == (200, [200])
        reply = api.delete(path, company.owner.token)
        assert (reply.status, reply.data) == (200, {"deleted": True})
        assert statuses(api, old, new, other) == [401, 200, 200]
        assert table.get(keys.key_secret(tokens.digest(old["key"]))) is None
        after = table.get(keys.organization(company.organization_id))
        assert (after["keys"], after["keyVersion"]) == (before["keys"], before["keyVersion"] + 1)
        assert api.get(f"/v1/api-keys/{new['keyId']}", company.owner.token).data["previous"] is None
        entry = next(it for it in all_entries() if it["action"] == "api_key.end_grace_period")
        assert (entry["resource"], entry["actorId"]) == (new["keyId"], company.owner.user_id)
        assert entry["before"] == {"worksUntil": "2026-03-05T05:06:07.000Z"}
        assert api.delete(path, company.owner.token).status == 404
        assert api.delete(f"/v1/api-keys/{new['keyId']}", company.owner.token).status == 200
        assert statuses(api, new) == [401]

    def test_a_replaced_key_is_unknown_once_its_grace_period_is_over(self, api: Api, world: World, now):
        company = world.company()
        old, replaced = create(api, company), create(api, company)
        new = [roll(api, company, old, 60).data, roll(api, company, replaced, 0).data]
        now.advance(60)
        for key in (old, replaced):
            assert api.delete(f"/v1/api-keys/{key['keyId']}", company.owner.token).code == "NOT_FOUND"
        assert statuses(api, *new) == [200, 200]

    def test_only_an_admin_ends_a_grace_period(self, api: Api, world: World):
        company, stranger = world.company(), world.company()
        old = create(api, company)
        roll(api, company, old)
        path = f"/v1/api-keys/{old['keyId']}"
        assert api.delete(path, world.member(company).token).code == "FORBIDDEN"
        assert api.delete(path, stranger.owner.token).code == "NOT_FOUND"
        assert statuses(api, old) == [200]

    @each("seconds", [0, DAY])
    def test_the_next_roll_ends_an_earlier_grace_period(self, seconds, api: Api, world: World):
        company = world.company()
        first = create(api, company)
        second = roll(api, company, first).data
        third = roll(api, company, second, seconds).data
        assert statuses(api, first, second, third) == [401, 200 if seconds else 401, 200]

    def test_a_plan_change_applies_to_the_old_secret(self, api: Api, world: World):
        company = world.company()
        old = create(api, company)
        roll(api, company, old)
        billing.change_plan(company.organization_id, "free")
        assert api.get("/v1/me", old["key"]).code == "PLAN_REQUIRED"

    def test_a_plan_changes_after_an_old_secret_was_deleted(self, api: Api, world: World, now):
        company = world.company()
        old = create(api, company)
        new = roll(api, company, old).data
        now.advance(DAY)
        table.delete(Delete(keys.key_secret(tokens.digest(old["key"]))), PREPARED)
        billing.change_plan(company.organization_id, "free")
        assert api.get("/v1/me", new["key"]).code == "PLAN_REQUIRED"

    def test_a_plan_change_restores_nothing_of_an_old_secret_that_expires_meanwhile(self, api: Api, world: World, now):
        company = world.company()
        old = create(api, company)
        roll(api, company, old)
        secret = keys.key_secret(tokens.digest(old["key"]))

        def expire() -> None:
            now.advance(DAY + 1)
            table.delete(Delete(secret), PREPARED)

        with before_the_transaction(table.client, expire):
            billing.change_plan(company.organization_id, "starter")
        assert table.get(secret) is None
        organization = table.get(keys.organization(company.organization_id))
        assert organization is not None
        assert organization["plan"] == "starter"

    def test_deleting_the_organization_ends_the_old_secret(self, api: Api, world: World):
        company = world.company()
        old = create(api, company)
        roll(api, company, old)
        deletions.delete_organization(company.organization_id)
        assert statuses(api, old) == [401]

    def test_a_request_with_the_old_secret_takes_one_write(self, api: Api, world: World):
        company = world.company()
        old = create(api, company)
        roll(api, company, old)
        api.get("/v1/me", old["key"])
        with recorded_calls() as calls:
            api.get("/v1/me", old["key"])
        assert [call.operation for call in calls] == ["UpdateItem"]

    def test_the_audit_log_says_how_long_the_old_secret_works(self, api: Api, world: World):
        company = world.company()
        old = create(api, company)
        new = roll(api, company, old).data
        entry = next(it for it in all_entries() if it["action"] == "api_key.roll")
        assert entry["after"] == {"successor": new["keyId"], "worksUntil": "2026-03-05T05:06:07.000Z"}

    def test_a_retry_returns_the_same_secret(self, api: Api, world: World):
        company = world.company()
        old = create(api, company)
        once = {"Idempotency-Key": "once"}
        first, second = [roll(api, company, old, headers=once).data for _ in range(2)]
        assert first == second
        assert roll(api, company, old, 60, headers=once).code == "INVALID_PAYLOAD"


class Test400:
    @each("seconds", [-1, 7 * DAY + 1, 1.5, "60", True, None])
    def test_a_grace_period_is_up_to_seven_days(self, seconds, api: Api, world: World):
        company = world.company()
        old = create(api, company)
        assert roll(api, company, old, seconds).code == "INVALID_PAYLOAD"
        assert statuses(api, old) == [200]


class Test409:
    def test_an_expired_key_cannot_be_rolled(self, api: Api, world: World, now):
        company = world.company()
        old = create(api, company, expiresAt="2026-03-04T06:00:00Z")
        now.advance(3600)
        assert roll(api, company, old).code == "CONFLICT"

    def test_at_most_20_keys_are_in_a_grace_period(self, api: Api, world: World, now):
        company = world.company()
        made = [create(api, company) for _ in range(KEYS_IN_GRACE_PER_ORGANIZATION + 1)]
        rolled = [roll(api, company, key).data for key in made[:-1]]
        refused = roll(api, company, made[-1])
        assert (refused.code, refused.error["details"]) == ("KEY_LIMIT_REACHED", {"limit": 20})
        # The key's own grace period ends with the roll.
        assert roll(api, company, rolled[0]).status == 200
        assert roll(api, company, made[-1], 0).status == 200
        now.advance(DAY + 1)
        assert roll(api, company, rolled[1]).status == 200
        billing.change_plan(company.organization_id, "starter")
        deletions.delete_organization(company.organization_id)

    def test_of_two_keys_rolled_at_once_one_gets_the_last_grace_period(self, api: Api, world: World, monkeypatch):
        monkeypatch.setattr(api_keys, "KEYS_IN_GRACE_PER_ORGANIZATION", 1)
        company = world.company()
        first, second = (KeyId.stored(create(api, company)["keyId"]) for _ in range(2))

        def roll_at_once(key_id: KeyId) -> None:
            api_keys.roll_key(key_id, company.owner.user_id, "test", grace_seconds=DAY)

        with (
            before_the_transaction(table.client, lambda: roll_at_once(second)),
            pytest.raises(api_keys.TooManyInGrace),
        ):
            roll_at_once(first)

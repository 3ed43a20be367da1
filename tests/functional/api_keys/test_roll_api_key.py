"""POST /v1/api-keys/{keyId}/roll: a new key replaces the old one at once, or at the end of a grace period."""

from typing import Any

import pytest

from controlplane.api_keys import store as api_keys
from controlplane.billing import store as billing
from controlplane.erasure import deletions
from controlplane.platform.core import clock
from controlplane.platform.core.plans import KEYS_IN_GRACE_PER_ORGANIZATION
from controlplane.platform.table.table import table
from tests.functional.api_keys.conftest import DAY, Organization, id_of, stored_secret
from tests.support.audit_log import all_entries
from tests.support.calls import before_the_transaction
from tests.support.each import each

KEPT: dict[str, Any] = {
    "name": "deploy",
    "description": "For releases.",
    "scopes": ["api-keys.read", "inbox.read"],
    "allowedIps": ["198.51.100.0/24"],
}
SOON, TOMORROW = "2026-03-04T06:00:00.000Z", "2026-03-05T05:06:07.000Z"


def test_rolling_returns_a_new_secret_and_id_and_revokes_the_old_secret(acme, world, now):
    admin, old = world.member(acme.company, "admin"), acme.create(**KEPT)
    now.advance(60)
    reply = acme.call("POST", f"/{old['keyId']}/roll", admin.token)
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
    new = reply.data
    assert new == {
        **old,
        "keyId": new["keyId"],
        "key": new["key"],
        "start": new["key"][:11],
        "createdAt": "2026-03-04T05:07:07.000Z",
        "meta": {
            "createdBy": admin.user_id,
            "createdFrom": "api",
            "createdAt": "2026-03-04T05:07:07.000Z",
        },
        "replacedKeyId": old["keyId"],
        "previous": None,
    }
    assert acme.works(old, new) == [False, True]
    assert [key["keyId"] for key in acme.listed()] == [new["keyId"]]
    assert (acme.roll(old).status, acme.count()) == (404, (1, 1))


def test_the_old_secret_works_until_the_last_moment_and_says_so(acme, api, now):
    old = acme.create(**KEPT)
    new = acme.roll(old, DAY).data
    assert {name: new[name] for name in KEPT} == KEPT
    assert new["previous"] == {
        "keyId": old["keyId"],
        "start": old["start"],
        "expiresAt": TOMORROW,
        "lastUsedAt": None,
    }
    (entry,) = [it for it in all_entries() if it["action"] == "api_key.roll"]
    assert entry["after"] == {"successor": new["keyId"], "worksUntil": TOMORROW}
    stored = stored_secret(old)
    assert stored is not None
    assert stored["expiresAt"] == stored["validUntil"] + DAY
    now.advance(DAY - 0.001 - clock.now() % 1)
    headers = api.get("/v1/me", old["key"]).headers
    assert (headers["x-key-expires-at"], headers["x-key-replaced-by"]) == (TOMORROW, new["keyId"])
    assert not {"x-key-expires-at", "x-key-replaced-by"} & {*api.get("/v1/me", new["key"]).headers}
    now.advance(0.001)
    assert acme.works(old, new) == [False, True]
    assert acme.get(new)["previous"] is None


def test_every_minute_in_which_the_old_secret_was_used_is_shown(acme, now):
    old = acme.create()
    now.advance(30)  # 05:06:37
    acme.works(old)
    new = acme.roll(old, DAY).data

    def shown():
        (listed,) = acme.listed()
        renamed = acme.update(new, description=clock.timestamp()).data
        assert (listed["keyId"], listed["lastUsedAt"]) == (new["keyId"], None)
        return [key["previous"]["lastUsedAt"] for key in (acme.get(new), renamed, listed)]

    assert shown() == [None] * 3
    now.advance(10)
    acme.works(old)
    # In the minute of the roll, the roll itself is the earliest possible time.
    assert shown() == ["2026-03-04T05:06:37.000Z"] * 3
    for seconds, minute in ((60, "2026-03-04T05:07:00.000Z"), (120, "2026-03-04T05:09:00.000Z")):
        now.advance(seconds)
        acme.works(old)
        now.advance(3)
        acme.works(old)
        assert shown() == [minute] * 3
        now.advance(-3)


def test_the_keys_limits_are_those_of_the_old_secret(acme, api, now):
    olds = [acme.create(expiresAt=SOON), acme.create(), acme.create()]
    news = [acme.roll(old, DAY).data for old in olds]
    assert acme.update(news[1], scopes=["inbox.read"], expiresAt=SOON).status == 200
    assert acme.update(news[2], expiresAt="2026-04-01T00:00:00Z").status == 200
    ends = [SOON, SOON, TOMORROW]
    assert [acme.get(new)["previous"]["expiresAt"] for new in news] == ends
    assert {api.get("/v1/projects", key["key"]).code for key in (olds[1], news[1])} == {"INSUFFICIENT_SCOPE"}
    now.advance(3600)
    assert (acme.works(*olds), acme.works(*news)) == ([False, False, True], [False, False, True])
    assert acme.roll(news[0]).code == "CONFLICT"
    now.advance(DAY - 3600)
    assert (acme.works(olds[2], news[2]), acme.delete(olds[2]).code) == ([False, True], "NOT_FOUND")


def test_deleting_the_replaced_key_ends_only_its_secret(acme):
    old, other = acme.create(), acme.create()
    new, _ = acme.roll(old, DAY).data, acme.roll(other, DAY)
    before = acme.stored()
    dry_run = acme.api.delete(f"/v1/api-keys/{old['keyId']}?dryRun=true", acme.token)
    assert (dry_run.status, acme.works(old)) == (200, [True])
    reply = acme.delete(old)
    assert (reply.status, reply.data) == (200, {"deleted": True})
    assert (acme.works(old, new, other), stored_secret(old)) == ([False, True, True], None)
    after = acme.stored()
    assert (after["keys"], after["keyVersion"]) == (before["keys"], before["keyVersion"] + 1)
    assert acme.get(new)["previous"] is None
    (entry,) = [it for it in all_entries() if it["action"] == "api_key.end_grace_period"]
    assert (entry["resource"], entry["actorId"]) == (new["keyId"], acme.owner.user_id)
    assert entry["before"] == {"worksUntil": TOMORROW}
    assert [acme.delete(key).status for key in (old, new)] == [404, 200]
    assert acme.works(new) == [False]


@each("end", [lambda acme, key: acme.delete(key), lambda acme, _: deletions.delete_organization(acme.id)])
def test_revoking_the_key_or_deleting_the_organization_ends_both_secrets(end, api, world):
    acme = Organization(api, world)
    old = acme.create()
    new = acme.roll(old, DAY).data
    end(acme, new)
    assert (acme.works(old, new), stored_secret(old)) == ([False, False], None)


@each("seconds", [0, DAY])
def test_the_next_roll_ends_an_earlier_grace_period(seconds, acme):
    first = acme.create()
    second = acme.roll(first, DAY).data
    third = acme.roll(second, seconds).data
    assert acme.works(first, second, third) == [False, seconds > 0, True]


def test_a_grace_period_is_optional_and_has_up_to_seven_days_in_whole_seconds(acme):
    key = acme.create()
    for seconds in (-1, 7 * DAY + 1, 1.5, "60", True, None):
        assert acme.roll(key, seconds).code == "INVALID_PAYLOAD", seconds
    assert [acme.roll(acme.create(), seconds).status for seconds in (60.0, 7 * DAY)] == [200, 200]
    for body in (None, b"", b"{}"):
        reply = acme.call("POST", f"/{acme.create()['keyId']}/roll", raw_body=body)
        assert (reply.status, reply.data["previous"]) == (200, None)
    once = {"Idempotency-Key": "once"}
    first, second = [acme.roll(key, DAY, headers=once).data for _ in range(2)]
    assert (first, acme.roll(key, 60, headers=once).code) == (second, "INVALID_PAYLOAD")


def test_at_most_20_keys_are_in_a_grace_period(acme, now):
    made = [acme.create() for _ in range(KEYS_IN_GRACE_PER_ORGANIZATION + 1)]
    rolled = [acme.roll(key, DAY).data for key in made[:-1]]
    refused = acme.roll(made[-1], DAY)
    assert (refused.status, refused.code, refused.error["details"]) == (409, "KEY_LIMIT_REACHED", {"limit": 20})
    # The key's own grace period ends with the roll.
    assert [acme.roll(rolled[0], DAY).status, acme.roll(made[-1]).status] == [200, 200]
    now.advance(DAY + 1)
    assert acme.roll(rolled[1], DAY).status == 200
    billing.change_plan(acme.id, "starter")
    deletions.delete_organization(acme.id)


def test_of_two_keys_rolled_at_once_one_gets_the_last_grace_period(acme, monkeypatch):
    monkeypatch.setattr(api_keys, "KEYS_IN_GRACE_PER_ORGANIZATION", 1)
    first, second = acme.create(), acme.create()

    def roll(key):
        api_keys.roll_key(id_of(key), acme.owner.user_id, "test", grace_seconds=DAY)

    with before_the_transaction(table.client, lambda: roll(second)), pytest.raises(api_keys.TooManyInGrace):
        roll(first)

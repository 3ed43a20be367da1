"""A key is created, changed, rolled, or revoked once, below the limit, and with the plan that its organization has.

An invariant compares the number of keys, their secrets, their restrictions, and their plans after each run.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from controlplane.api_keys import leaked
from controlplane.api_keys import store as api_keys
from controlplane.api_keys.leaked import Leak
from controlplane.billing import store as billing
from controlplane.platform.core import ids, tokens
from controlplane.platform.core.ids import KeyId
from controlplane.platform.table import keys
from controlplane.platform.table.legs import encode_item
from controlplane.platform.table.table import table
from tests.races.faults import check_first
from tests.races.stage import Stage, faults, race
from tests.races.threads import run_repeatedly
from tests.support.api import Reply
from tests.support.world import World

WIDE = {"inbox.read", "projects.read"}


class Owner:
    """The owner of an organization with so many keys, and their requests about one, which may be in a grace period."""

    def __init__(self, world: World, stage: Stage, *, rolled: bool = False, existing: int = 1) -> None:
        self.api, self.company = stage.api, world.company("pro")
        self.token, self.id = self.company.owner.token, self.company.organization_id
        made = api_keys.create_key(self.id, "deploy", self.company.owner.user_id, "test")
        self.secrets = [made.secret]
        self.key_id = self.first_id = made.item.key_id
        if rolled:
            made = api_keys.roll_key(self.key_id, self.company.owner.user_id, "test", grace_seconds=3600)
            self.secrets.append(made.secret)
            self.key_id = made.item.key_id
        if existing > 1:
            self._add_copies(made.item, existing - 1)

    def create(self) -> Reply:
        return self.api.post(f"/v1/api-keys?organizationId={self.id}", self.token, json_body={"name": "deploy"})

    def replace(self) -> Reply:
        return self._request("POST", "/roll")

    def roll(self) -> Reply:
        return self._request("POST", "/roll", {"gracePeriodSeconds": 3600})

    def delete(self) -> Reply:
        return self._request("DELETE")

    def end_grace(self) -> Reply:
        return self.api.delete(f"/v1/api-keys/{self.first_id}?organizationId={self.id}", self.token)

    def limit(self) -> Reply:
        return self._request("PATCH", body={"scopes": ["inbox.read"]})

    def limit_otherwise(self) -> Reply:
        return self._request("PATCH", body={"scopes": ["projects.read"]})

    def rename(self) -> Reply:
        return self._request("PATCH", body={"name": "Deploys"})

    def call(self) -> Reply:
        return self.api.get("/v1/me", self.secrets[0])

    def leak(self) -> bool:
        return leaked.revoke_key(tokens.digest(self.secrets[0]), Leak("commit", None))

    def downgrade(self) -> None:
        billing.change_plan(self.id, "free")

    def upgrade(self) -> None:
        billing.change_plan(self.id, "enterprise")

    def create_unbranded(self) -> Reply:
        body = {"name": "Shop", "region": "eu-central", "consent": {"branding": "none"}}
        return self.api.post(f"/v1/projects?organizationId={self.id}", self.token, json_body=body)

    def previous(self) -> Any:
        """Returns what the list shows of the old secret of the one key."""
        (key,) = self.api.get(f"/v1/api-keys?organizationId={self.id}", self.token).data
        return key["previous"]

    def status(self, secret: str) -> int:
        return self.api.get("/v1/me", secret).status

    def scopes_of(self, secret: str) -> set[str] | None:
        """Returns the scopes with which the secret works, or None if it doesn't."""
        reply = self.api.get("/v1/me", secret)
        return {*reply.data["scopes"]} if reply.status == 200 else None

    def working(self) -> list[bool]:
        return [self.status(secret) == 200 for secret in self.secrets]

    def _request(self, method: str, rest: str = "", body: Any = None) -> Reply:
        path = f"/v1/api-keys/{self.key_id}{rest}?organizationId={self.id}"
        return self.api.call(method, path, self.token, json_body=body)

    def _add_copies(self, original: Any, copies: int) -> None:
        """Adds this number of keys, in a few writes."""
        secret = table.get(keys.key_secret(original.digest)) or {}
        organization = table.get(keys.organization(self.id)) or {}
        items = [{**organization, "keys": organization["keys"] + copies}]
        for _ in range(copies):
            digest = tokens.digest(tokens.mint("assent"))
            key_id = KeyId.of(self.id, ids.new_local())
            items.append(replace(original, key_id=key_id, digest=digest).to_item())
            items.append({**secret, **keys.key_secret(digest)._asdict(), "keyId": key_id})
        for start in range(0, len(items), 25):
            puts = [{"PutRequest": {"Item": encode_item(put)}} for put in items[start : start + 25]]
            table.client.batch_write_item(RequestItems={table.name: puts})


@race()
def test_one_of_three_creations_at_49_keys_succeeds(world, stage):
    owner = Owner(world, stage, existing=49)
    replies = yield [owner.create] * 3
    assert sorted(reply.status for reply in replies) == [201, 409, 409]
    assert {reply.code for reply in replies if reply.status == 409} == {"KEY_LIMIT_REACHED"}


def test_sixteen_threads_create_keys_up_to_50(stage):
    owner = Owner(stage.fresh(), stage, existing=45)
    outcomes = run_repeatedly([owner.create] * 16)
    assert Counter(outcome.get().status for outcome in outcomes) == {201: 5, 409: 11}
    assert {owner.status(it.value.data["key"]) for it in outcomes if it.value.status == 201} == {200}
    stage.check_invariants()


@race(ends={201, 409})
def test_a_creation_at_50_keys_succeeds_only_after_a_deletion(world, stage):
    owner = Owner(world, stage, existing=50)
    created, deleted = yield [owner.create, owner.delete]
    assert (deleted.status, owner.call().status) == (200, 401)
    return created.status


@race()
def test_rolling_a_key_at_the_limit_of_50_frees_no_slot(world, stage):
    owner = Owner(world, stage, existing=50)
    replies = yield [owner.create, owner.replace]
    assert [reply.status for reply in replies] == [409, 200]


ONCE = {(200, 404), (404, 200)}
# For the acts at once on a key, which may be in a grace period: what they may get together, and which of its secrets
# work then.
TWO_ACTS = [
    (False, ("replace", "replace"), ONCE, [False]),
    (False, ("replace", "delete"), ONCE, [False]),
    (False, ("delete", "delete"), ONCE, [False]),
    (False, ("leak", "roll"), {(True, 200), (True, 404)}, [False]),
    (False, ("delete", "upgrade"), {(200, None)}, [False]),
    (True, ("delete", "call"), {(200, 200), (200, 401)}, [False, False]),
    (True, ("delete", "limit"), {(200, 200), (200, 404)}, [False, False]),
    # The older secret ends with the second roll, too. After it, the revoked key is the replaced one.
    (True, ("delete", "roll"), {(200, 200), (200, 404)}, [False, False]),
    (True, ("end_grace", "call"), {(200, 200), (200, 401)}, [False, True]),
    (True, ("end_grace", "rename"), {(200, 200)}, [False, True]),
    (True, ("end_grace", "end_grace"), ONCE, [False, True]),
    (True, ("end_grace", "delete"), {(200, 200), (404, 200)}, [False, False]),
    (True, ("end_grace", "roll"), {(200, 200), (404, 200)}, [False, True]),
    (True, ("end_grace", "leak"), {(200, False), (404, True)}, [False, True]),
]


@pytest.mark.parametrize(("rolled", "acts", "replies", "working"), TWO_ACTS)
@race()
def test_a_key_is_replaced_or_revoked_once_and_a_grace_period_ends_once(
    world, *, stage, rolled, acts, replies, working
):
    owner = Owner(world, stage, rolled=rolled, existing=1 + (not rolled))
    made = yield [getattr(owner, act) for act in acts]
    assert tuple(getattr(it, "status", it) for it in made) in replies
    assert owner.working() == working
    assert {owner.status(it.data["key"]) for it in made if getattr(it, "status", 0) == 200 and "key" in it.data} <= {
        200
    }


@pytest.mark.parametrize("used", [False, True])
@race()
def test_a_request_during_a_roll_succeeds_and_is_shown_if_it_came_after_it(world, stage, used):
    owner = Owner(world, stage)
    if used:
        owner.call()
    rolled, called = yield [owner.roll, owner.call]
    assert (rolled.status, called.status) == (200, 200)
    assert called.headers.get("x-key-replaced-by") in {None, rolled.data["keyId"]}
    assert (owner.previous()["lastUsedAt"] is not None) == ("x-key-replaced-by" in called.headers)


@race()
def test_a_limit_is_not_lost_in_a_roll(world, stage):
    owner = Owner(world, stage)
    limited, rolled = yield [owner.limit, owner.roll]
    assert rolled.status == 200
    assert limited.status in {200, 404}
    for secret in (owner.secrets[0], rolled.data["key"]):
        scopes = owner.scopes_of(secret) or set()
        assert scopes == {"inbox.read"} if limited.status == 200 else scopes > WIDE


@race()
def test_two_changes_of_different_fields_are_both_made(world, stage):
    owner = Owner(world, stage)
    replies = yield [owner.limit, owner.rename]
    assert [reply.status for reply in replies] == [200, 200]
    found = owner.api.get(f"/v1/api-keys/{owner.key_id}", owner.token).data
    assert (found["name"], found["scopes"]) == ("Deploys", ["inbox.read"])


@race()
def test_of_two_limits_that_exclude_each_other_the_second_is_rejected(world, stage):
    owner = Owner(world, stage)
    replies = yield [owner.limit, owner.limit_otherwise]
    assert sorted(reply.status for reply in replies) == [200, 400]
    (made,) = (reply for reply in replies if reply.status == 200)
    assert owner.scopes_of(owner.secrets[0]) == {*made.data["scopes"]}


@race(ends={200, 402})
def test_calls_are_accepted_before_the_downgrade_and_rejected_after_it(world, stage):
    owner = Owner(world, stage)
    _, called = yield [owner.downgrade, owner.call]
    assert owner.call().code == "PLAN_REQUIRED"
    return called.status


@pytest.mark.parametrize("act", ["create", "replace", "roll"])
@race()
def test_no_secret_works_after_the_downgrade_during_which_it_is_created(world, stage, act):
    owner = Owner(world, stage)
    _, made = yield [owner.downgrade, getattr(owner, act)]
    assert made.status == 402 or owner.status(made.data["key"]) == 402
    assert owner.call().status == (401 if act == "replace" and made.status == 200 else 402)


@pytest.mark.parametrize("act", ["create", "replace"])
@race(ends={1_500, 3_000})
def test_a_key_has_the_rate_of_the_plan_at_its_creation(world, stage, act):
    owner = Owner(world, stage)
    _, made = yield [owner.upgrade, getattr(owner, act)]
    assert made.data["rateLimit"] == (3_000 if stage.came_first(0) else 1_500)
    return made.data["rateLimit"]


@race()
def test_branding_is_removed_only_if_the_plan_allows_it_at_the_write(world, stage):
    owner = Owner(world, stage)
    _, made = yield [owner.downgrade, owner.create_unbranded]
    assert made.status == (402 if stage.came_first(0) else 201)
    assert made.status == 201 or made.code == "PLAN_REQUIRED"


@race()
def test_the_later_of_two_changes_applies_to_every_key(world, stage):
    owner = Owner(world, stage, existing=2)
    yield [owner.upgrade, owner.downgrade]
    organization, _ = billing.get_billing(owner.id)
    assert organization.plan == ("free" if stage.came_first(0) else "enterprise")


def test_threads_use_and_create_keys_while_they_and_the_plan_change(stage):
    owner = Owner(stage.fresh(), stage, rolled=True)
    for outcome in run_repeatedly([*[owner.call] * 6, owner.limit, owner.rename], times=5):
        assert outcome.get().status == 200
    assert [owner.scopes_of(secret) for secret in owner.secrets] == [{"inbox.read"}, {"inbox.read"}]
    acts = [*[owner.call] * 6, *[owner.create] * 2, owner.downgrade, owner.upgrade]
    for outcome in run_repeatedly(acts, times=5):
        assert outcome.get() is None or outcome.value.status in {200, 201, 402}
    stage.check_invariants()


@faults()
def test_under_every_fault_a_creation_is_complete_or_absent(world, stage):
    owner = Owner(world, stage)
    case = yield owner.create
    first = check_first(case, 201)
    assert case.second.get().status == 201
    assert not first or owner.status(first.data["key"]) == 200


@pytest.mark.parametrize("act", ["replace", "delete"])
@faults()
def test_under_every_fault_the_old_secret_is_revoked_and_a_new_one_works(world, stage, act):
    owner = Owner(world, stage)
    case = yield getattr(owner, act)
    first, again = check_first(case, 200), case.second.get()
    assert again.status in ({404} if first else {200, 404})  # 404: the key was deleted
    assert not first or act == "delete" or owner.status(first.data["key"]) == 200
    assert owner.call().status == 401


@faults()
def test_a_plan_change_is_complete_and_repeatable_after_every_fault(world, stage):
    owner = Owner(world, stage, existing=2)
    case = yield owner.downgrade
    stage.check_invariants()
    case.second.get()
    assert owner.call().status == 402

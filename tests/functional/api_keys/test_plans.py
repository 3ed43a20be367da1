"""The plan of an organization decides whether its keys are accepted, and how many requests they can send."""

import pytest

from controlplane.billing import store as billing
from controlplane.platform.core import tokens
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from tests.functional.api_keys.conftest import DAY, Key, Organization, stored_secret
from tests.support.api import Api
from tests.support.calls import before_the_transaction
from tests.support.table import PREPARED
from tests.support.world import World

RATES = [("starter", 600), ("pro", 1500), ("enterprise", 3000)]


def rate_of(api: Api, key: Key) -> tuple[str, str]:
    """Sends a request with the key and returns its limit, and what is left of it."""
    headers = api.get("/v1/me", key["key"]).headers
    return headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]


@pytest.mark.parametrize(("plan", "rate"), RATES)
def test_the_plan_sets_the_rate_limit(plan, rate, api: Api, world: World):
    key = Organization(api, world, plan).create()
    assert (key["rateLimit"], rate_of(api, key)) == (rate, (str(rate), str(rate - 1)))


def test_a_key_keeps_its_limit_and_its_window_after_a_plan_change(api: Api, world: World):
    acme = Organization(api, world, "starter")
    key = acme.create()
    for plan, remaining in (("pro", "599"), ("starter", "598"), ("enterprise", "597")):
        billing.change_plan(acme.id, plan)
        assert rate_of(api, key) == ("600", remaining)
    new = acme.create()
    billing.change_plan(acme.id, "starter")
    assert rate_of(api, new) == ("3000", "2999")


def test_a_rolled_key_has_the_current_plans_limit_and_a_new_window(api: Api, world: World):
    acme = Organization(api, world, "starter")
    old = acme.create()
    assert rate_of(api, old) == ("600", "599")
    billing.change_plan(acme.id, "enterprise")
    new = acme.roll(old).data
    assert (new["rateLimit"], rate_of(api, new)) == (3000, ("3000", "2999"))


def test_an_upgrade_between_read_and_commit_grants_the_new_limit(api: Api, world: World):
    acme = Organization(api, world, "starter")
    with before_the_transaction(table.client, lambda: billing.change_plan(acme.id, "pro")):
        assert acme.create()["rateLimit"] == 1500


def test_without_a_paid_plan_keys_are_neither_accepted_nor_created_but_can_be_revoked(acme: Organization):
    key = acme.create()
    billing.change_plan(acme.id, "free")
    for refused in (acme.post(), acme.roll(key), acme.call("GET", "", key["key"])):
        assert (refused.status, refused.code) == (402, "PLAN_REQUIRED")
    assert acme.listed() == [acme.get(key)]
    assert [acme.update(key, name="x").status, acme.delete(key).status] == [200, 200]


def test_a_downgrade_between_read_and_commit_is_rejected(acme: Organization):
    key = acme.create()
    for send in (acme.post, lambda: acme.roll(key)):
        with before_the_transaction(table.client, lambda: billing.change_plan(acme.id, "free")):
            assert send().code == "PLAN_REQUIRED"
        billing.change_plan(acme.id, "pro")
    assert (acme.works(key), acme.count()) == ([True], (1, 1))


def test_a_plan_change_applies_to_the_secret_of_a_rolled_key(acme: Organization, api: Api):
    old = acme.create()
    acme.roll(old, DAY)
    billing.change_plan(acme.id, "free")
    assert api.get("/v1/me", old["key"]).code == "PLAN_REQUIRED"


def test_a_plan_change_neither_needs_nor_restores_an_old_secret(acme: Organization, api: Api, now):
    old = acme.create()
    new = acme.roll(old, DAY).data

    def expire() -> None:
        now.advance(DAY + 1)
        table.delete(Delete(keys.key_secret(tokens.digest(old["key"]))), PREPARED)

    with before_the_transaction(table.client, expire):
        billing.change_plan(acme.id, "starter")
    assert (stored_secret(old), acme.stored()["plan"]) == (None, "starter")
    billing.change_plan(acme.id, "free")
    assert api.get("/v1/me", new["key"]).code == "PLAN_REQUIRED"

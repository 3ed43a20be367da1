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

RATES = [("starter", 600), ("pro", 1500), ("enterprise", 3000)]


def rate_of(api: Api, key: Key) -> tuple[str, str]:
    """Sends a request with the key and returns its limit, and what is left of it."""
    headers = api.get("/v1/me", key["key"]).headers
    return headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]


@pytest.mark.parametrize(("plan", "rate"), RATES)
def test_the_plan_sets_the_rate_limit(plan, rate, api, world):
    key = Organization(api, world, plan).create()
    assert (key["rateLimit"], rate_of(api, key)) == (rate, (str(rate), str(rate - 1)))


def test_a_key_keeps_its_limit_and_its_window_and_a_new_or_rolled_one_has_those_of_the_current_plan(api, world):
    acme = Organization(api, world, "starter")
    key = acme.create()
    for plan, remaining in (("pro", "599"), ("starter", "598"), ("enterprise", "597")):
        billing.change_plan(acme.id, plan)
        assert rate_of(api, key) == ("600", remaining)
    rolled = acme.roll(key).data
    assert (rolled["rateLimit"], rate_of(api, rolled)) == (3000, ("3000", "2999"))
    billing.change_plan(acme.id, "starter")
    assert rate_of(api, rolled) == ("3000", "2998")
    with before_the_transaction(table.client, lambda: billing.change_plan(acme.id, "pro")):
        assert acme.create()["rateLimit"] == 1500


def test_without_a_paid_plan_keys_are_neither_accepted_nor_created_but_can_be_revoked(acme):
    key = acme.create()
    billing.change_plan(acme.id, "free")
    for refused in (acme.post(), acme.roll(key), acme.call("GET", "", key["key"])):
        assert (refused.status, refused.code) == (402, "PLAN_REQUIRED")
    assert acme.listed() == [acme.get(key)]
    assert [acme.update(key, name="x").status, acme.delete(key).status] == [200, 200]


def test_a_downgrade_between_read_and_commit_is_rejected(acme):
    key = acme.create()
    for send in (acme.post, lambda: acme.roll(key)):
        with before_the_transaction(table.client, lambda: billing.change_plan(acme.id, "free")):
            assert send().code == "PLAN_REQUIRED"
        billing.change_plan(acme.id, "pro")
    assert (acme.works(key), acme.count()) == ([True], (1, 1))


def test_a_plan_change_applies_to_the_secrets_of_a_rolled_key_but_does_not_restore_an_old_one(acme, api, now):
    old = acme.create()
    new = acme.roll(old, DAY).data
    billing.change_plan(acme.id, "free")
    assert {api.get("/v1/me", key["key"]).code for key in (old, new)} == {"PLAN_REQUIRED"}

    def expire():
        now.advance(DAY + 1)
        table.delete(Delete(keys.key_secret(tokens.digest(old["key"]))), PREPARED)

    with before_the_transaction(table.client, expire):
        billing.change_plan(acme.id, "starter")
    assert (stored_secret(old), acme.stored()["plan"]) == (None, "starter")
    billing.change_plan(acme.id, "free")
    assert api.get("/v1/me", new["key"]).code == "PLAN_REQUIRED"

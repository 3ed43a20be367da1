"""Writes about API keys, and repeated requests."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import store as api_keys
from controlplane.api_keys.items import ApiKeyItem
from controlplane.platform.table import idempotency, keys
from controlplane.platform.table.table import ConditionFailed, LegFailed
from tests.functional.stale_writes.cases import Act, Case, Make, check_refused, sets, transacts, updates
from tests.support.world import World


def _api_key(world: World, earlier: Callable[[ApiKeyItem, str], Any], *, is_new: bool = True) -> Case:
    """Changes a key as it was read."""
    company = world.company()
    owner = company.owner.user_id
    read = api_keys.create_key(company.organization_id, "deploy", owner, "test").item
    if not is_new:
        read = key_changes.update_key(read.key_id, lambda it: replace(it, name="earlier"), admin_id=owner)
    write = key_changes._change(read, replace(read, name="stale"))
    return updates(write), lambda: earlier(read, owner), ConditionFailed


def _rename(key: ApiKeyItem, owner: str) -> ApiKeyItem:
    return key_changes.update_key(key.key_id, lambda it: replace(it, name="other"), admin_id=owner)


def _idempotent(
    write: Callable[[keys.Key], Act], changed: str = "attempt", error: type[Exception] = ConditionFailed
) -> Case:
    """Writes to the record of a request with an Idempotency-Key."""
    key = keys.idempotent_answer("digest")
    idempotency.begin_attempt(key, "mine", "payload")
    return write(key), sets(key, **{changed: "other"}), error


def _effect(key: keys.Key) -> Act:
    return transacts(key=idempotency.effect_leg(key, "mine"))


def _answer(key: keys.Key) -> Act:
    return lambda: idempotency.complete_attempt(key, "mine", "{}")


def _abandonment(key: keys.Key) -> Act:
    return lambda: idempotency.abandon_attempt(key, "mine")


CASES: dict[str, Make] = {
    "API key that was changed": lambda it: _api_key(it, _rename),
    "API key that was changed twice": lambda it: _api_key(it, _rename, is_new=False),
    "API key that was deleted": lambda it: _api_key(
        it, lambda key, owner: key_changes.delete_key(key.key_id, admin_id=owner)
    ),
    "effect of a request that another attempt makes": lambda _: _idempotent(_effect, error=LegFailed),
    "answer to a request that another attempt makes": lambda _: _idempotent(_answer),
    "abandoned request that took effect": lambda _: _idempotent(_abandonment, "effective"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_outdated_write_is_refused_and_changes_nothing(name, world):
    check_refused(CASES[name], world)

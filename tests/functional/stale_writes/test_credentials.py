"""Writes about API keys, tokens, devices, and repeated requests."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import store as api_keys
from controlplane.api_keys.items import ApiKeyItem
from controlplane.billing import store as billing
from controlplane.organizations import store as organizations
from controlplane.people import device
from controlplane.platform.table import idempotency, keys
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import ConditionFailed, LegFailed, Update, table
from tests.functional.device_auth.devices import get_request, request_code
from tests.functional.stale_writes.cases import Case, Make, cases, check_refused
from tests.support.api import Api
from tests.support.table import PREPARED
from tests.support.world import World


def device_request_that_was_denied(_: World) -> Case:
    request = get_request(request_code(Api()).device_code)
    denial = Update(request.key, "SET #status = :denied", None, {"denied": "denied"})
    return lambda: device.note_poll(request), lambda: table.update(denial, PREPARED), WriteConflict


def api_key_that_was_changed_again(world: World) -> Case:
    company = world.company()
    owner = company.owner.user_id
    key_id = api_keys.create_key(company.organization_id, "deploy", owner, "test").item.key_id

    def rename(name: str) -> ApiKeyItem:
        return key_changes.update_key(key_id, lambda it: replace(it, name=name), admin_id=owner)

    read = rename("first")
    write = key_changes._change(read, replace(read, name="stale"))
    return lambda: table.update(write, PREPARED), lambda: rename("second"), ConditionFailed


def api_key_that_was_deleted(world: World) -> Case:
    company = world.company()
    owner = company.owner.user_id
    read = api_keys.create_key(company.organization_id, "deploy", owner, "test").item
    write = key_changes._change(read, replace(read, name="stale"))
    return (
        lambda: table.update(write, PREPARED),
        lambda: key_changes.delete_key(read.key_id, admin_id=owner),
        ConditionFailed,
    )


def api_key_on_a_former_plan(world: World) -> Case:
    company = world.company()
    read = organizations.get_organization(company.organization_id)
    return (
        lambda: api_keys.create_key(read.organization_id, "deploy", company.owner.user_id, "test", known=read),
        lambda: billing.change_plan(read.organization_id, "free"),
        api_keys.PlanHasNoApiAccess,
    )


def _idempotent(write: Callable[[keys.Key], Any], change: str, error: type[Exception] = ConditionFailed) -> Case:
    """Writes to the record of a request with an Idempotency-Key."""
    key = keys.idempotent_answer("digest")
    idempotency.begin_attempt(key, "mine", "payload")
    other = Update(key, f"SET {change} = :other", None, {"other": "other"})
    return lambda: write(key), lambda: table.update(other, PREPARED), error


def effect_of_a_request_that_another_attempt_makes(_: World) -> Case:
    def take_effect(key: keys.Key) -> None:
        table.transact({"key": idempotency.effect_leg(key, "mine")}, PREPARED)

    return _idempotent(take_effect, "#attempt", LegFailed)


def answer_to_a_request_that_another_attempt_makes(_: World) -> Case:
    return _idempotent(lambda key: idempotency.complete_attempt(key, "mine", "{}"), "#attempt")


def abandoned_request_that_another_attempt_makes(_: World) -> Case:
    return _idempotent(lambda key: idempotency.abandon_attempt(key, "mine"), "#attempt")


def abandoned_request_that_took_effect(_: World) -> Case:
    return _idempotent(lambda key: idempotency.abandon_attempt(key, "mine"), "#effective")


@pytest.mark.parametrize("make", cases(globals()), ids=lambda make: make.__name__)
def test_an_outdated_write_is_refused_and_changes_nothing(make: Make, world: World):
    check_refused(make, world)

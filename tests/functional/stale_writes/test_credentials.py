"""Writes about API keys, devices, and repeated requests."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import store as api_keys
from controlplane.api_keys.items import ApiKeyItem
from controlplane.code_host import installations
from controlplane.people import device, device_approvals
from controlplane.platform.table import idempotency, keys
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import ConditionFailed, LegFailed
from tests.functional.device_auth.devices import get_request, request_code
from tests.functional.stale_writes.cases import (
    Act,
    Case,
    Make,
    Refused,
    check_refused,
    happens,
    sets,
    transacts,
    updates,
)
from tests.support.api import Api
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


def _device(world: World, **changed: Any) -> Case:
    """Redeems an approved request."""
    request = get_request(request_code(Api()).approved(world.person().user_id).device_code)
    return lambda: device.redeem(request), sets(request.key, **changed), WriteConflict


def _look(world: World) -> Case:
    """Records that a person has looked up a code, in two requests at once."""
    user_id, code = world.person().user_id, request_code(Api()).user_code
    pointer = device_approvals._find_pointer(code)
    assert pointer is not None
    note = happens(lambda: device_approvals._note_look(pointer, user_id))
    return note, lambda: device_approvals._note_look(pointer, user_id), Refused


def _state(_: World) -> Case:
    use = happens(lambda: installations.use_state("digest", 1_790_000_000))
    return use, use, Refused


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
    "device that was denied": lambda it: _device(it, status="denied"),
    "device whose request expired": lambda it: _device(it, validUntil=0),
    "code that the person looked up before": _look,
    "state of GitHub that was used": _state,
    "effect of a request that another attempt makes": lambda _: _idempotent(_effect, error=LegFailed),
    "answer to a request that another attempt makes": lambda _: _idempotent(_answer),
    "abandoned request that took effect": lambda _: _idempotent(_abandonment, "effective"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_outdated_write_is_refused_and_changes_nothing(name, world):
    check_refused(CASES[name], world)

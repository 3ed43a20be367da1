"""Fixtures for the tests of `device_auth`: devices in each state of a sign-in, which one person approves."""

import pytest

from controlplane.platform.core.settings import settings
from tests.functional.device_auth.devices import Device, Tokens, request_code
from tests.support.api import Api
from tests.support.world import Person, World


@pytest.fixture
def person(world: World) -> Person:
    return world.person()


@pytest.fixture
def pending(api: Api) -> Device:
    """Returns a device that waits for its approval."""
    return request_code(api)


@pytest.fixture
def approved(pending: Device, person: Person) -> Device:
    return pending.approved(person.user_id)


@pytest.fixture
def pair(approved: Device) -> Tokens:
    """Returns the first access token and refresh token of an approved device."""
    redeemed: Tokens = approved.redeem().data
    return redeemed


@pytest.fixture
def switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables device authorization."""
    monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)

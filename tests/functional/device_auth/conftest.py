"""Fixtures for the tests of `device_auth`: devices in each state of a sign-in, which one person approves."""

import pytest

from controlplane.platform.core.settings import settings
from tests.functional.device_auth.devices import Tokens, request_code


@pytest.fixture
def person(world):
    return world.person()


@pytest.fixture
def pending(api):
    """Returns a device that waits for its approval."""
    return request_code(api)


@pytest.fixture
def approved(pending, person):
    return pending.approved(person.user_id)


@pytest.fixture
def pair(approved):
    """Returns the first access token and refresh token of an approved device."""
    redeemed: Tokens = approved.redeem().data
    return redeemed


@pytest.fixture
def switched_off(monkeypatch):
    """Disables device authorization."""
    monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)

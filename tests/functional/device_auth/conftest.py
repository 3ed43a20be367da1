"""Fixtures for the tests of `device_auth`."""

import pytest

from tests.support.world import Person, World


@pytest.fixture
def person(world: World) -> Person:
    return world.person()


@pytest.fixture
def switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables device authorization."""
    from controlplane.core.settings import settings

    monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)

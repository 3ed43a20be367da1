"""What the tests of `device_auth` start from: somebody with an account."""

import pytest

from tests.support.world import Person, World


@pytest.fixture
def person(world: World) -> Person:
    return world.person()


@pytest.fixture
def switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting that turns device authorization off."""
    from controlplane.settings import settings

    monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)

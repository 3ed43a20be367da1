"""A company, and the line from an event to its endpoints."""

import pytest

from controlplane.platform.core.settings import SigningSecret, settings
from tests.support.endpoints import Line, Receiver


@pytest.fixture
def company(world):
    return world.company()


@pytest.fixture
def line(world, company, sqs, monkeypatch):
    return Line(sqs, world, company, Receiver().install(monkeypatch))


@pytest.fixture
def sign_with(monkeypatch):
    """Replaces the signing secret, with which the endpoints' secrets are sealed."""

    def change(current, previous=None):
        changed = settings.model_copy(update={"signing_secret": SigningSecret(current=current, previous=previous)})
        monkeypatch.setattr("controlplane.platform.core.keyring.settings", changed)

    return change

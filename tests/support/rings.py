"""Sets the signing secret of tests: one key, or a ring of two as during a rotation."""

import threading
from collections.abc import Callable

import pytest

from controlplane.platform.core.settings import SigningSecret, settings

OLD, NEW, NEWER = "an-old-signing-key-of-enough-length", "a-new-signing-key-of-enough-length", "n" * 40

# The steps of a rotation, as in docs/operations/run.md. While a step is deployed, functions of the previous step still
# run, and a rollback returns to it.
BEFORE = SigningSecret(current=OLD)
ADDED = SigningSecret(current=OLD, next=NEW)
SWITCHED = SigningSecret(current=NEW, previous=OLD)
# The first step of the next rotation, at least 30 days later, which drops the oldest key.
ADDED_AGAIN = SigningSecret(current=NEW, next=NEWER)
# Pairs of steps that can run at the same time.
MIXED_FLEETS = [(BEFORE, ADDED), (ADDED, BEFORE), (ADDED, SWITCHED), (SWITCHED, ADDED)]


def use_ring(monkeypatch: pytest.MonkeyPatch, secret: SigningSecret | None) -> None:
    """Sets the functions' signing secret."""
    monkeypatch.setitem(settings.__dict__, "signing_secret", secret)


def use_ring_of_thread(monkeypatch: pytest.MonkeyPatch) -> Callable[[SigningSecret], None]:
    """Gives each thread its own signing secret, as each version of a function has.

    Returns a callable that sets the secret of the calling thread. A thread's initial secret is BEFORE.
    """
    own = threading.local()

    class ThreadSecret:
        @property
        def keys(self) -> tuple[str, ...]:
            secret: SigningSecret = getattr(own, "secret", BEFORE)
            return secret.keys

    monkeypatch.setitem(settings.__dict__, "signing_secret", ThreadSecret())

    def set_secret(secret: SigningSecret) -> None:
        own.secret = secret

    return set_secret

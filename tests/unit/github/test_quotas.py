"""The requests that installations have left."""

import pytest

from controlplane.code_host.github.app_auth import Quotas
from controlplane.code_host.github.errors import RateLimitedByHost
from controlplane.code_host.github.transport import Response
from controlplane.platform.core import clock
from tests.support.each import each

NOW = 1_772_600_767
SPENT = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(NOW + 60)}


@each(
    ("headers", "seconds"),
    [
        (SPENT, 60),
        # By the host's clock, which is ten seconds behind ours.
        (SPENT | {"Date": "Wed, 04 Mar 2026 05:05:57 GMT"}, 70),
        (SPENT | {"X-RateLimit-Reset": str(NOW)}, 0),
        (SPENT | {"X-RateLimit-Reset": "soon"}, 0),
        (SPENT | {"X-RateLimit-Remaining": "1"}, 0),
        ({"X-RateLimit-Remaining": "0"}, 0),
        ({}, 0),
    ],
)
def test_an_installation_waits_for_its_next_requests(headers, seconds, monkeypatch):
    monkeypatch.setattr(clock, "source", lambda: NOW + 0.9)
    quotas = Quotas()
    quotas.note(7, Response(200, headers, None))
    assert [quotas.seconds_left(it) for it in (7, 8)] == [seconds, 0]
    quotas.require(8)
    if seconds:
        with pytest.raises(RateLimitedByHost) as limited:
            quotas.require(7)
        assert limited.value.retry_after_seconds == seconds
    monkeypatch.setattr(clock, "source", lambda: NOW + seconds - 0.1)
    assert quotas.seconds_left(7) == min(seconds, 1)
    monkeypatch.setattr(clock, "source", lambda: float(NOW + seconds))
    quotas.require(7)

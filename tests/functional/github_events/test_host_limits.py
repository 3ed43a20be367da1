"""Limits of an installation's requests, as GitHub told one of our functions."""

from types import SimpleNamespace

from controlplane.code_host import installations as host_limits
from controlplane.code_host.github import client
from controlplane.code_host.github.app_auth import Quotas
from controlplane.code_host.github.transport import Response
from controlplane.code_host.requests import within_limits


def test_the_limit_that_ends_last_counts(now):
    for seconds, left in ((60, 60), (30, 60), (90, 90)):
        host_limits.limit(7, seconds)
        assert host_limits.seconds_left(7) == left
    assert host_limits.seconds_left(8) == 0
    now.advance(89)
    assert host_limits.seconds_left(7) == 1
    now.advance(2)
    assert host_limits.seconds_left(7) == 0


def test_the_last_request_that_an_installation_has_is_known_to_all_workers(now, monkeypatch):
    quotas, reset = Quotas(), str(int(now.seconds) + 60)
    with monkeypatch.context() as patched:
        patched.setattr(client, "get_transport", lambda: (None, SimpleNamespace(quotas=quotas)))
        with within_limits(7):
            quotas.note(7, Response(200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, None))
    assert host_limits.seconds_left(7) == 60

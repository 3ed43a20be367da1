"""Limits of an installation's requests, as GitHub told one of our functions."""

from controlplane.store import host_limits
from tests.functional.conftest import FakeClock


def test_the_limit_that_ends_last_counts(now: FakeClock):
    for seconds, left in ((60, 60), (30, 60), (90, 90)):
        host_limits.limit(7, seconds)
        assert host_limits.seconds_left(7) == left
    assert host_limits.seconds_left(8) == 0
    now.advance(89)
    assert host_limits.seconds_left(7) == 1
    now.advance(2)
    assert host_limits.seconds_left(7) == 0

"""A request's time budget: what counts toward it, how much is left, and that connections wait no longer."""

import socket
from io import BytesIO

import pytest
from requests import PreparedRequest
from requests.adapters import HTTPAdapter

from controlplane.platform.core import deadline
from dashboard.access.provider import _BoundedAdapter, _BoundedStream
from tests.functional.conftest import FakeClock


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(deadline, "source", clock)
    return clock


def test_without_a_budget_nothing_is_limited(now):
    with deadline.spending():
        now.seconds += 1000
        assert deadline.remaining() is None
        assert deadline.bounded(3) == 3
        assert deadline.bounded(None) is None
        assert not deadline.is_over()


def test_only_time_inside_calls_counts(now):
    with deadline.budget(5):
        now.seconds += 100
        with deadline.spending():
            now.seconds += 2
            assert deadline.remaining() == 3
        now.seconds += 100
        assert deadline.remaining() == 3


def test_calls_add_up_and_nested_calls_count_once(now):
    with deadline.budget(5):
        with deadline.spending(), deadline.spending():
            now.seconds += 2
        with deadline.spending():
            now.seconds += 2
            assert deadline.bounded(3) == 1
            assert deadline.bounded(0.5) == 0.5
            assert deadline.bounded(None) == 1
            assert not deadline.is_over()
            now.seconds += 1
            assert deadline.is_over()
            now.seconds += 1
            # A timeout of 0 would make the socket non-blocking.
            assert 0 < deadline.bounded(3) < 0.01  # type: ignore[operator]
        assert deadline.is_over()


def test_two_threads_can_begin_and_end_calls_at_once(now, monkeypatch):
    first, second = deadline.spending(), deadline.spending()
    pending = [second]

    def begin_the_other_call() -> float:
        if pending:
            pending.pop().__enter__()
        return now()

    with deadline.budget(10):
        monkeypatch.setattr(deadline, "source", begin_the_other_call)
        first.__enter__()  # the second call begins before this one has been noted
        now.seconds += 4
        first.__exit__(None, None, None)
        assert deadline.remaining() == 6
        now.seconds += 1
        second.__exit__(None, None, None)
        assert deadline.remaining() == 5


def test_a_nested_budget_is_never_longer_and_is_charged_to_the_outer_one(now):
    with deadline.budget(5):
        with deadline.budget(2), deadline.spending():
            now.seconds += 1.5
            assert deadline.remaining() == 0.5
        assert deadline.remaining() == 3.5
        with deadline.budget(10):
            assert deadline.remaining() == 3.5


class Context:
    """The part of Lambda's context that says how long the invocation may still take."""

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds


def test_calls_end_before_lambda_ends_the_invocation(now):
    with deadline.invocation(Context(3_250)):
        assert deadline.remaining() == 3
        now.seconds += 1  # all time counts, not only that inside calls
        assert deadline.bounded(3) == 2
        with deadline.budget(1), deadline.spending():
            assert deadline.remaining() == 1
            now.seconds += 0.5
            assert deadline.remaining() == 0.5
        with deadline.budget(5):
            assert deadline.remaining() == 1.5
            now.seconds += 2
            assert deadline.is_over()
    assert deadline.remaining() is None
    with deadline.invocation(None):
        assert deadline.remaining() is None


def test_a_budget_ends_with_its_request(now):
    with pytest.raises(ValueError, match="x"), deadline.budget(5), deadline.spending():
        raise ValueError("x")
    assert deadline.remaining() is None


def test_each_read_of_a_response_waits_no_longer_than_what_is_left():
    with socket.socket() as sock:
        sock.settimeout(3)
        stream = _BoundedStream(BytesIO(b"ab"), sock)  # type: ignore[arg-type]
        for seconds in (2, 1):
            with deadline.budget(seconds), deadline.spending():
                assert stream.readinto(bytearray(1)) == 1
            assert sock.gettimeout() <= seconds
        assert stream.readinto(bytearray(1)) == 0
        assert sock.gettimeout() == 3
        with deadline.budget(0), pytest.raises(TimeoutError):
            stream.readinto(bytearray(1))


def test_a_request_to_the_provider_waits_no_longer_than_what_is_left(monkeypatch):
    timeouts: list[tuple[float, float]] = []
    monkeypatch.setattr(HTTPAdapter, "send", lambda *_, timeout, **__: timeouts.append(timeout))
    for seconds in (9, 2):
        with deadline.budget(seconds), deadline.spending():
            _BoundedAdapter().send(PreparedRequest())
    (unbounded, bounded) = timeouts
    assert unbounded == (3, 5)
    assert max(bounded) <= 2

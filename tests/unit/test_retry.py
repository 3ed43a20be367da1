"""Optimistic writes that meet other writers."""

import time

import pytest

from controlplane.platform.table.retry import Throttled, WriteConflict, retry_on_conflict


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    requested: list[float] = []
    monkeypatch.setattr(time, "sleep", requested.append)
    return requested


class Contended:
    """A write that others come before, the given number of times."""

    def __init__(self, conflicts: int) -> None:
        self.conflicts = conflicts
        self.attempts = 0

    def __call__(self) -> str:
        self.attempts += 1
        if self.attempts <= self.conflicts:
            raise WriteConflict
        return "written"


def test_the_first_retry_follows_at_once(pauses: list[float]) -> None:
    assert retry_on_conflict(Contended(1), "the item") == "written"
    assert pauses == []


def test_the_pauses_of_later_retries_are_random_and_double(pauses: list[float]) -> None:
    longest = [0.0] * 6
    for _ in range(200):
        pauses.clear()
        assert retry_on_conflict(Contended(7), "the item") == "written"
        longest = [max(pair) for pair in zip(longest, pauses, strict=True)]
    bounds = [0.025 * 2**number for number in range(6)]
    for reached, bound in zip(longest, bounds, strict=True):
        assert bound * 0.8 < reached < bound


def test_the_eighth_conflict_is_the_last(pauses: list[float]) -> None:
    write = Contended(8)
    with pytest.raises(Throttled, match="the item keeps changing"):
        retry_on_conflict(write, "the item")
    assert write.attempts == 8

"""Optimistic writes that meet other writers."""

import time

import pytest

from controlplane.platform.table.retry import Throttled, WriteConflict, retry_on_conflict


class Contended:
    """A write that others come before, the given number of times."""

    def __init__(self, conflicts: int) -> None:
        self.conflicts, self.attempts = conflicts, 0

    def __call__(self) -> str:
        self.attempts += 1
        if self.attempts <= self.conflicts:
            raise WriteConflict
        return "written"


def test_the_first_retry_follows_at_once_and_later_ones_after_random_pauses_that_double(monkeypatch):
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    assert retry_on_conflict(Contended(1), "the item") == "written"
    assert pauses == []
    longest = [0.0] * 6
    for _ in range(200):
        pauses.clear()
        assert retry_on_conflict(Contended(7), "the item") == "written"
        longest = [max(pair) for pair in zip(longest, pauses, strict=True)]
    for number, reached in enumerate(longest):
        bound = 0.025 * 2**number
        assert bound * 0.8 < reached < bound
    write = Contended(8)
    with pytest.raises(Throttled, match="the item keeps changing"):
        retry_on_conflict(write, "the item")
    assert write.attempts == 8

"""Interleaved rounds: every contender takes its turn in every round, so that a noisy machine moves all and no ratio."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Hashable, Iterable


def interleave[Name: Hashable](
    names: Iterable[Name], measure: Callable[[Name], float], rounds: int, *, warm_up: int = 1
) -> dict[Name, list[float]]:
    """The measured value of each name in each round, in an order that changes from round to round."""
    order = list(names)
    found: dict[Name, list[float]] = {name: [] for name in order}
    shuffled = random.Random(20)  # nosec B311  # the same orders in every run
    for turn in range(rounds + warm_up):
        shuffled.shuffle(order)
        for name in order:
            value = measure(name)
            if turn >= warm_up:
                found[name].append(value)
    return found


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the rounds' own ratios."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))

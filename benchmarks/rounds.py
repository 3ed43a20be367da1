"""Measures in interleaved rounds, so that a noisy machine affects all contenders alike and not their ratios."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Hashable, Iterable


def interleave[Name: Hashable](
    names: Iterable[Name], measure: Callable[[Name], float], rounds: int, *, warm_up: int = 1
) -> dict[Name, list[float]]:
    """Returns the measured values of each name by round. The order changes from round to round."""
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
    """Returns the median of the ratios of each round."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))

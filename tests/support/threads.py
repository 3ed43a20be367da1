"""Runs callables many times in threads that start together, against an engine with real atomicity.

Schedules prove the order of calls; threads prove what lies below it: the engine, the client's pool, shared state.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.outcomes import Outcome

_LIMIT_SECONDS = 60


def hammer(acts: Sequence[Callable[[], Any]], *, times: int = 1) -> list[Outcome]:
    """One thread an act, each running its act `times` times from one barrier on. Outcomes of the first act first."""
    barrier = threading.Barrier(len(acts))
    outcomes: list[list[Outcome]] = [[] for _ in acts]

    def run(act: Callable[[], Any], own: list[Outcome]) -> None:
        barrier.wait(_LIMIT_SECONDS)
        own.extend(Outcome.of(act) for _ in range(times))

    threads = [
        threading.Thread(target=run, args=(act, own), daemon=True) for act, own in zip(acts, outcomes, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_LIMIT_SECONDS)
    if any(thread.is_alive() for thread in threads):
        raise TimeoutError(f"acts still ran after {_LIMIT_SECONDS} seconds")
    return [outcome for own in outcomes for outcome in own]

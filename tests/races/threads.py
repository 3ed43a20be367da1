"""Runs callables many times in threads that start together, on an engine with real atomicity.

Schedules test the order of calls. Threads test the level below: the engine, the client's pool, and shared state.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.outcomes import Outcome

_LIMIT_SECONDS = 60


def run_repeatedly(acts: Sequence[Callable[[], Any]], *, times: int = 1) -> list[Outcome]:
    """Runs each act `times` times in its own thread, from a common barrier. Returns the outcomes in order of acts."""
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

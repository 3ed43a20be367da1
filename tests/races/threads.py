"""Runs callables many times in threads that start together, on an engine with real atomicity.

Schedules test the order of calls. Threads test the level below: the engine, the client's pool, and shared state.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.outcomes import Outcome

_LIMIT_SECONDS = 60


def run_repeatedly(acts: Sequence[Callable[[], Any]], *, times: int = 1) -> list[Outcome]:
    """Runs each act `times` times in its own thread, from a common barrier. Returns the outcomes in order of acts."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], Any]) -> list[Outcome]:
        barrier.wait(_LIMIT_SECONDS)
        return [Outcome.of(act) for _ in range(times)]

    with ThreadPoolExecutor(len(acts)) as threads:
        return [outcome for own in threads.map(run, acts, timeout=_LIMIT_SECONDS) for outcome in own]

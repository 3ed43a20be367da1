"""How the CPU time of a call grows with the length of the text it is given.

The time is the thread's own, so that a busy machine doesn't count. A call that is quick at the largest size has no
growth that matters; one that takes longer is measured at a quarter of the size too, again and again if it seems to
grow too much: only a growth that every attempt confirms is reported.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

# From a size at which even exponential time ends, to one at which quadratic time shows.
SIZES = (24, 256, 2_048, 16_384)
MOST_PER_DOUBLING = 2.5
_MEASURED_SECONDS = 0.003
_LONG_SECONDS = 0.03
_ATTEMPTS = 6
_BEYOND_BOUNDS = 8_192
_MORE_THAN_QUADRATIC = 24


@contextmanager
def no_collections() -> Iterator[None]:
    """A garbage collection takes time for what other code has left."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cpu_seconds(call: Callable[[], object]) -> float:
    """The CPU time of one call. What it raises is part of the call: hostile text is to be rejected."""
    started = time.thread_time()
    with suppress(Exception):
        call()
    return time.thread_time() - started


def excess(
    call: Callable[[Any], object], text: Callable[[int], Any], largest: int = SIZES[-1], smallest: int = SIZES[0]
) -> str | None:
    """Returns None if the time is linear in the text's length, or what was measured if it isn't."""
    sizes = [size for size in SIZES if smallest <= size < largest] + [largest]
    for size in sizes:
        given = text(size)
        seconds = cpu_seconds(lambda given=given: call(given))  # type: ignore[misc]
        if seconds > _MEASURED_SECONDS and (measured := _measured(call, text, size)):
            return measured
        if seconds > _LONG_SECONDS:
            return None
    return None


def _measured(call: Callable[[Any], object], text: Callable[[int], Any], size: int) -> str | None:
    """Compares two doublings with the most that two may come to. The least of all measurements of a size counts."""
    given = {part: text(part) for part in (size // 4, size // 2, size)}
    least = dict.fromkeys(given, float("inf"))
    for _ in range(_ATTEMPTS):
        for part, hostile in given.items():
            least[part] = min(least[part], cpu_seconds(lambda hostile=hostile: call(hostile)))  # type: ignore[misc]
        growth = least[size] / least[size // 4]
        if least[size] <= _MEASURED_SECONDS or growth <= MOST_PER_DOUBLING**2:
            return None
    # What is read again within a bound (500 characters, say) grows like this up to the bound, and not beyond it.
    if size < _BEYOND_BOUNDS and growth < _MORE_THAN_QUADRATIC:
        return _measured(call, text, 4 * size)
    return ", ".join(f"{part:,} characters {seconds * 1000:.2f} ms" for part, seconds in least.items())

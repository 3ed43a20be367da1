"""Measures how the CPU time of a call grows with the length of its text argument.

Uses the thread's CPU time, so that other load doesn't matter. The growth of a call that is fast at the largest size is
ignored. A slower call is also measured at a quarter of the size, repeatedly if it seems to grow too fast: only growth
that every attempt confirms is reported. Other programs slow long texts more than short ones, because they take the
processor's caches. Where texts may be of any length, growth is only reported if it goes on beyond the largest size.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

# From a size at which even exponential time completes, to one at which quadratic time is measurable.
SIZES = (24, 256, 2_048, 16_384)
MOST_PER_DOUBLING = 2.5
_MEASURED_SECONDS = 0.003
_LONG_SECONDS = 0.03
# Growth that takes this long is reported, whether it is bounded or not.
_TOO_LONG_SECONDS = 0.3
# From here on, more than quadratic time is obvious.
_TELLING = 2_048
# How much longer it takes than a quarter of it, if time is linear.
_LINEAR_GROWTH = 4.5
# At least so many attempts, over so many seconds, with a pause that grows by this much.
_ATTEMPTS = 3
_SECONDS = 3
_PAUSE_SECONDS = 0.1
_BEYOND_BOUNDS = 8_192
# Two doublings of quadratic time: 16 times, less what the first characters take.
_QUADRATIC = 12
_MORE_THAN_QUADRATIC = 24
# What a quarter more text adds to exponential time is far more than what it adds to cubic time, which is doubled.
_LEAST_OF_EXPONENTIAL = 4


@contextmanager
def no_collections() -> Iterator[None]:
    """Disables garbage collection, which would add the time for other code's garbage."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cpu_seconds(call: Callable[[], object]) -> float:
    """Returns the CPU time of one call. Ignores exceptions, because hostile text should be rejected."""
    started = time.thread_time()
    with suppress(Exception):
        call()
    return time.thread_time() - started


def excess(
    call: Callable[[Any], object],
    text: Callable[[int], Any],
    largest: int = SIZES[-1],
    smallest: int = SIZES[0],
    beyond: int | None = None,
) -> str | None:
    """Returns None if the time is linear in the text's length, otherwise the measurement.

    beyond: a larger size, which must confirm the measurement.
    """
    taken: dict[int, float] = {}
    for size in [*(size for size in SIZES if smallest <= size < largest), largest]:
        seconds = taken[size] = _seconds(call, text(size))
        if seconds > _MEASURED_SECONDS and seconds > _seconds(call, text(size // 4)) * MOST_PER_DOUBLING**2:
            measured = _measured(call, text, size)
            if measured and beyond:
                measured = _measured(call, text, beyond)
            if measured:
                return measured
        if seconds > _LONG_SECONDS or (size == _TELLING < largest and _stays_linear(call, text, taken, largest)):
            return None
    return None


def _stays_linear(
    call: Callable[[Any], object], text: Callable[[int], Any], taken: dict[int, float], largest: int
) -> bool:
    """Returns whether the largest size needn't be tried: the call is too fast, or a quarter took a quarter of the time.

    taken: the seconds of the telling size and of smaller ones. A part that is quadratic and would count at the largest
    size shows here, too.
    """
    if taken[_TELLING] * (largest / _TELLING) ** 2 < _MEASURED_SECONDS:
        return True
    quarter = _TELLING // 4
    given = text(quarter)
    # The size before the quarter says what it should take, at most. Otherwise, so does a second measurement.
    before = [seconds * quarter / size for size, seconds in taken.items() if size < quarter]
    seconds = min(_seconds(call, given), before[-1] if before else _seconds(call, given))
    return taken[_TELLING] < _LINEAR_GROWTH * seconds


def _seconds(call: Callable[[Any], object], given: Any) -> float:
    return cpu_seconds(lambda: call(given))


def _measured(call: Callable[[Any], object], text: Callable[[int], Any], size: int) -> str | None:
    """Compares the growth over two doublings with the allowed maximum. The smallest growth counts.

    It is that of an attempt, or that of the fastest measurements: a processor that others use changes its speed.
    """
    given = {part: text(part) for part in (size // 4, size // 2, size)}
    least = dict.fromkeys(given, float("inf"))
    started, attempts = time.monotonic(), 0
    while attempts < _ATTEMPTS or time.monotonic() - started < _SECONDS:
        time.sleep(attempts * _PAUSE_SECONDS)
        attempts += 1
        taken = {part: _seconds(call, hostile) for part, hostile in given.items()}
        least = {part: min(seconds, taken[part]) for part, seconds in least.items()}
        growth = min(it[size] / it[size // 4] for it in (taken, least))
        if least[size] <= _MEASURED_SECONDS or growth <= MOST_PER_DOUBLING**2:
            return None
        # Rereading within a limit (such as 500 characters) also grows like this, but only up to the limit. A limit from
        # which on a text is read at all makes one of the two doublings steep. A slightly longer text tells that from
        # exponential time, which must not be measured further.
        slowest = min(least[size // 2] / least[size // 4], least[size] / least[size // 2])
        beyond_bounds = _BEYOND_BOUNDS if growth >= _QUADRATIC else 32 * _BEYOND_BOUNDS  # or a long limit, or caches
        is_bounded = slowest**2 < _MORE_THAN_QUADRATIC and size < beyond_bounds and least[size] < _TOO_LONG_SECONDS
        if is_bounded and _seconds(call, text(size * 5 // 4)) < _LEAST_OF_EXPONENTIAL * least[size]:
            return _measured(call, text, 4 * size)
    return ", ".join(f"{part:,} characters {seconds * 1000:.2f} ms" for part, seconds in least.items())

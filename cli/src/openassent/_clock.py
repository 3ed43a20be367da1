"""Time for both clients. The synchronous client gets `sleep` in place of `sleep_async`."""

import asyncio
import time

_LONGEST_SLEEP_SECONDS = 3_600.0


def monotonic() -> float:
    """Returns seconds since an arbitrary moment, unaffected by changes of the system's clock."""
    return time.monotonic()


async def sleep_async(seconds: float) -> None:
    await asyncio.sleep(_bounded(seconds))


def sleep(seconds: float) -> None:
    time.sleep(_bounded(seconds))


def _bounded(seconds: float) -> float:
    """Returns the waiting time that the service requests, within bounds."""
    return min(max(seconds, 0.0), _LONGEST_SLEEP_SECONDS)

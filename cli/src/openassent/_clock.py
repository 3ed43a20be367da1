"""Time for both clients. The synchronous client gets `sleep` in place of `sleep_async`."""

import asyncio
import time


def monotonic() -> float:
    """Returns seconds since an arbitrary moment, unaffected by changes of the system's clock."""
    return time.monotonic()


async def sleep_async(seconds: float) -> None:
    await asyncio.sleep(seconds)


def sleep(seconds: float) -> None:
    time.sleep(seconds)

"""Waits for scans."""

from collections.abc import Callable

from openassent._async import _operations
from openassent._retries import monotonic, sleep_async
from openassent.errors import ScanStartFailed, WaitTimedOut
from openassent.models import Scan, ScanDetail, ScanNotStarted, ScanStarted, ScanStarting

_ENDED = {"completed", "failed", "canceled"}
# How often a scan is read while its progress is followed.
_POLL_SECONDS = 2.0
# The longest time that the service waits for the end of a scan.
_LONGEST_WAIT_SECONDS = 20


class AsyncScans(_operations.AsyncScans):
    """Scans of connected repositories. Give the result of `start` to `wait`."""

    async def wait(
        self,
        scan: str | Scan | ScanDetail | ScanStarted | ScanStarting | ScanNotStarted,
        *,
        on_progress: Callable[[ScanDetail], None] | None = None,
        timeout: float | None = None,
    ) -> ScanDetail:
        """Waits until a scan has ended, and returns it: `completed`, `failed`, or `canceled`.

        scan: a scan, its ID, or the result of `start` or `request`.
        on_progress: is called with the scan each time it was read, every two seconds.
        timeout: in seconds. By default, it waits as long as the scan takes.

        Raises ScanStartFailed if the scan couldn't be started, and WaitTimedOut if the timeout is over first.
        """
        deadline = None if timeout is None else monotonic() + timeout
        scan_id = await self._started(scan, deadline)
        while True:
            began = monotonic()
            # A scan whose progress isn't shown needs fewer requests.
            held = None if on_progress or deadline is not None else _LONGEST_WAIT_SECONDS
            found = await self.get(scan_id, wait_seconds=held)
            if on_progress is not None:
                on_progress(found)
            if found.status in _ENDED:
                return found
            await pause(_POLL_SECONDS - (monotonic() - began), deadline)

    async def _started(
        self, scan: str | Scan | ScanDetail | ScanStarted | ScanStarting | ScanNotStarted, deadline: float | None
    ) -> str:
        while isinstance(scan, ScanStarting):
            await pause(scan.retry_after_seconds, deadline)
            scan = await self.request(scan.preparation_id, repository_id=scan.repository_id)
        if isinstance(scan, ScanNotStarted):
            raise ScanStartFailed(scan.error.message, code=scan.error.code)
        if isinstance(scan, ScanStarted):
            return scan.scan.id
        return scan if isinstance(scan, str) else scan.id


async def pause(seconds: float, deadline: float | None, what: str = "scan") -> None:
    """Sleeps. Raises WaitTimedOut if that would exceed the deadline."""
    if deadline is not None and monotonic() + seconds > deadline:
        raise WaitTimedOut(f"The {what} hasn't ended in time. It continues.")
    await sleep_async(max(0.0, seconds))

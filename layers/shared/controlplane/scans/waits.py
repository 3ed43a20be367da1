"""Waiting for scans and their requests."""

from collections.abc import Callable
from typing import NamedTuple

from controlplane.platform.core import clock
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import ScanRequestId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import waiting
from controlplane.scans import reads
from controlplane.scans.inventories import ScanWithInventory
from controlplane.scans.items import RequestItem, ScanItem

# How long clients should wait before they poll a scan or its request again.
RETRY_AFTER_SECONDS = 2
_POLL_SECONDS = 0.25
_LATER_POLL_SECONDS = 1.0


class Outcome(NamedTuple):
    """The current state of a scan request, with its scan if that exists."""

    request: RequestItem
    scan: ScanItem | None


def find_outcome(request: RequestItem) -> Outcome:
    """Returns the request with its scan. Raises UnknownScan if the scan was deleted with its project."""
    return Outcome(request, reads.get_scan(request.scan_id) if request.scan_id else None)


async def wait_for_request(
    request_id: ScanRequestId, seconds: float | None = None, current: Outcome | None = None
) -> tuple[Outcome, bool]:
    """Waits that long for the request's scan to end, or for the request to fail.

    Without `seconds`, waits up to SCAN_START_WAIT_SECONDS for the scan to exist. current: its state as just read.
    Returns the state, and False if it couldn't wait because too many requests are waiting (`table.waiting`). Raises
    UnknownRequest or UnknownScan if it was deleted with its project. Reads the table at most 12 times in the first 3
    seconds, and once a second after that, two items at a time.
    """

    def is_open(outcome: Outcome) -> bool:
        is_running = seconds is not None and outcome.scan is not None and outcome.scan.is_open
        return outcome.request.status == "starting" or is_running

    longest = settings.scan_start_wait_seconds if seconds is None else seconds
    return await _wait(lambda: find_outcome(reads.get_request(request_id)), is_open, longest, current)


async def wait_for_end(found: ScanWithInventory, seconds: float) -> tuple[ScanWithInventory, bool]:
    """Waits that long for the scan to end. Returns it, and False if it couldn't wait. Reads as `wait_for_request`.

    Raises NotFound if it was deleted with its project.
    """

    def read() -> ScanWithInventory:
        current = reads.find_with_inventory(found.scan.scan_id)
        if current is None:
            raise NotFound
        return current

    return await _wait(read, lambda it: it.scan.is_open, seconds, found)


async def _wait[T](
    read: Callable[[], T], is_open: Callable[[T], bool], seconds: float, current: T | None = None
) -> tuple[T, bool]:
    """Polls until the state isn't open anymore, at most `seconds`, with a slot of `table.waiting`.

    Returns the last state, and False if it is open and there was no slot. Needs no slot if `seconds` is 0.
    """
    state = read() if current is None else current
    if not is_open(state) or not seconds:
        return state, True
    with waiting.slot(seconds) as may_wait:
        left, waited = seconds if may_wait else 0.0, 0.0
        while left > 0 and is_open(state):
            pause = min(left, _POLL_SECONDS if waited < settings.scan_start_wait_seconds else _LATER_POLL_SECONDS)
            await clock.pause(pause)
            left, waited = left - pause, waited + pause
            state = read()
    return state, may_wait

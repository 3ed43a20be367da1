"""Limits on rejected credentials per client address: beyond them, the response is 429 instead of 401.

Checking a well-formed credential reads the table, so an unknown one is also counted there, across all Lambda
environments. A malformed one (wrong format or checksum) must not cost a write, so it is counted in this environment's
memory. A valid credential is never counted, and never rejected because of others from the same address.
"""

from controlplane.platform.core import clock
from controlplane.platform.core.errors import RateLimited
from controlplane.platform.core.settings import settings
from controlplane.platform.http.client_address import network_of
from controlplane.platform.table import rate

_WINDOW_SECONDS = 60
# Addresses kept in memory, some 100 KB. Beyond that, the oldest is evicted.
_MAX_NETWORKS = 1000

# The last minute with malformed credentials and their number, by address.
_malformed: dict[str, tuple[int, int]] = {}


class TooManyRejected(RateLimited):
    """The address sent too many rejected credentials."""

    message = "Too many invalid credentials came from your address. Wait as long as the Retry-After header says."


def count_unknown(address: str) -> None:
    """Counts a well-formed credential that doesn't exist or has expired. Raises TooManyRejected, Throttled."""
    counted = rate.count_address("rejected", network_of(address), settings.rejected_credentials_per_minute)
    if counted.hits > counted.limit:
        raise TooManyRejected(counted.resets_at - int(clock.now()))


def count_malformed(address: str) -> None:
    """Counts a malformed credential, in this environment only. Raises TooManyRejected."""
    network, now = network_of(address), int(clock.now())
    minute = now // _WINDOW_SECONDS
    last, hits = _malformed.pop(network, (minute, 0))
    hits = hits + 1 if last == minute else 1
    if len(_malformed) >= _MAX_NETWORKS:
        _malformed.pop(next(iter(_malformed), ""), None)
    _malformed[network] = minute, hits
    if hits > settings.rejected_credentials_per_minute:
        raise TooManyRejected((minute + 1) * _WINDOW_SECONDS - now)


def reset_malformed() -> None:
    """Resets the counts of malformed credentials, as in a new environment."""
    _malformed.clear()

"""Limits on the rejected credentials of an address: past them, 429 instead of 401.

A credential that could be valid costs a look at the table, so it is counted there, for all environments together. One
that cannot be valid (its form or checksum is wrong) must not cost a write: it is counted in the memory of this
environment. A valid credential is never counted, and never refused because of others from the same address.
"""

from controlplane import clock
from controlplane.client_address import network_of
from controlplane.errors import RateLimited
from controlplane.settings import settings
from controlplane.store import rate

_WINDOW_SECONDS = 60
# How many addresses are remembered: some 100 KB. Beyond it the oldest is forgotten.
_MAX_NETWORKS = 1000

# By address, the minute and the malformed credentials in it.
_malformed: dict[str, tuple[int, int]] = {}


class TooManyRejected(RateLimited):
    """The address sent too many credentials that were rejected."""

    message = "Too many invalid credentials came from your address. Wait as long as the Retry-After header says."


def count_unknown(address: str) -> None:
    """Counts a well-formed credential that doesn't exist or has expired. Raises TooManyRejected, Throttled."""
    counted = rate.count_address("rejected", network_of(address), settings.rejected_credentials_per_minute)
    if counted.hits > counted.limit:
        raise TooManyRejected(counted.resets_at - int(clock.now()))


def count_malformed(address: str) -> None:
    """Counts a credential that cannot be valid, in this environment alone. Raises TooManyRejected."""
    network, now = network_of(address), int(clock.now())
    minute = now // _WINDOW_SECONDS
    last, hits = _malformed.pop(network, (minute, 0))
    hits = hits + 1 if last == minute else 1
    if len(_malformed) >= _MAX_NETWORKS:
        _malformed.pop(next(iter(_malformed), ""), None)
    _malformed[network] = minute, hits
    if hits > settings.rejected_credentials_per_minute:
        raise TooManyRejected((minute + 1) * _WINDOW_SECONDS - now)


def forget() -> None:
    """Forgets every malformed credential, as a new environment would."""
    _malformed.clear()

"""Data retention: settings give the number of days, and DynamoDB's TTL deletes items by `expiresAt`."""

from controlplane.platform.core import clock

_DAY_SECONDS = 86_400


def expiry(days: int, moment: float | None = None) -> dict[str, int]:
    """Returns the TTL attribute of an item that expires `days` after the moment (default: now), or {} for 0 days."""
    return {"expiresAt": int(clock.now() if moment is None else moment) + days * _DAY_SECONDS} if days else {}

"""How long data is kept: settings say how many days, and TTL removes an item by its `expiresAt`."""

from controlplane import clock

_DAY_SECONDS = 86_400


def expiry(days: int, moment: float | None = None) -> dict[str, int]:
    """The attribute by which TTL removes an item so many days after the moment (now, if None); none for 0 days."""
    return {"expiresAt": int(clock.now() if moment is None else moment) + days * _DAY_SECONDS} if days else {}

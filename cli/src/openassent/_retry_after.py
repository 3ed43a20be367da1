"""Reads the header Retry-After."""

import time
from email.utils import parsedate_to_datetime


def seconds_of(value: str | None) -> float | None:
    """Returns the seconds of a Retry-After header (RFC 9110, section 10.2.3), or None if it is missing or invalid."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None

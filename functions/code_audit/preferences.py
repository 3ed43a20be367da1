"""The Prefer header (RFC 7240): how long a client wants a request to wait for its result."""

import re
from typing import Annotated, Any

from fastapi import Header

from controlplane.platform.core.settings import settings

# One preference with its parameters: a name, and perhaps a value, which is a token or quoted.
_PREFERENCE = re.compile(
    r"\s*+([\w!#$%&'*+.^`|~-]++)\s*+(?:=\s*+(\"[^\"]*+\"|[^\s\",;]*+))?+\s*+(?:;[^,\"]*+)?+", re.ASCII
)
_LONGEST = 1_000
_SECONDS = re.compile(r"[0-9]{1,9}")

Prefer = Annotated[
    str | None,
    Header(
        alias="Prefer",
        description=(
            "`wait=10` waits up to 10 seconds until the scan has ended, and no longer than about 20 seconds "
            "(RFC 7240). The response's `Preference-Applied` says how long it would have waited. Without that header, "
            "too many requests were waiting: poll. Other preferences are ignored."
        ),
        examples=["wait=20"],
    ),
]

# The description of the response header, for routes that honor the preference.
APPLIED: dict[str, Any] = {"headers": {"Preference-Applied": {}}}


def read_wait(prefer: str | None) -> float | None:
    """Returns the seconds that the client wants to wait, capped at the maximum, or None without the preference.

    Of several, the first one counts. Invalid preferences are ignored.
    """
    for part in (prefer or "")[:_LONGEST].split(","):
        found = _PREFERENCE.fullmatch(part)
        if found and found[1].lower() == "wait":
            seconds = _SECONDS.fullmatch((found[2] or "").strip('"'))
            return min(float(seconds[0]), settings.scan_wait_seconds) if seconds else None
    return None


def applied(wait_seconds: float | None, *, is_applied: bool) -> dict[str, str]:
    """Returns the response header that says that the request would have waited that long."""
    return {"Preference-Applied": f"wait={wait_seconds:g}"} if wait_seconds is not None and is_applied else {}

"""The ids of requests: the gateway's, and the time at which the request began.

The time locates a request's records without an index: in the organization's partition, within the seconds that a
request can take. The gateway's part joins our logs with the gateway's. Clients treat ids as opaque.
"""

import re

from controlplane.platform.core import clock, ids

# The gateway waits for a function no longer than this. A queue's worker isn't the request.
LONGEST_SECONDS = 30
# Explained requests are at most this old.
EXPLAINED_SECONDS = 86_400

_ID = re.compile(r"[A-Za-z0-9-]{1,64}-([0-9a-hjkmnp-tv-z]{10})")


def with_time(gateway_id: str) -> str:
    """Returns the id of a request that begins now."""
    return f"{gateway_id}-{ids.local_at(clock.now())}"


def began_at(request_id: str) -> float | None:
    """Returns when the request began, in Unix seconds. None if the text isn't an id of ours."""
    match = _ID.fullmatch(request_id)
    return ids.created_at(match[1]) if match else None

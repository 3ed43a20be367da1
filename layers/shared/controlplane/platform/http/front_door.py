"""The optional front door: a CloudFront distribution, which proves itself to the functions by a secret header.

API Gateway renames the header WWW-Authenticate of a function's response, and the front door gives it its name back. Its
function runs only for statuses below 400. So a response with a challenge leaves here as 200, with its status in a
header that the front door turns into the status again.
docs/decisions/0052-a-front-door-restores-the-challenge.md has the reasons.
"""

import hmac
from collections.abc import Callable, MutableMapping
from typing import Any

from controlplane.platform.core.settings import settings

# CloudFront overwrites both if the client sends them: the first with the origin's header, the second in a function.
SECRET_HEADER = "x-front-door"  # nosec B105  # noqa: S105 (a header's name)
ADDRESS_HEADER = "true-client-ip"
STATUS_HEADER = "x-front-door-status"

_CHALLENGE = b"www-authenticate"


def was_used(read_header: Callable[[str], list[str]]) -> bool:
    """Returns True if the request came through the front door. `read_header` returns every value of a header."""
    if settings.front_door_secret is None:
        return False
    given = read_header(SECRET_HEADER)
    return len(given) == 1 and any(
        hmac.compare_digest(given[0].encode(), secret.encode()) for secret in settings.front_door_secret.keys
    )


def carry_challenge(start: MutableMapping[str, Any]) -> None:
    """Moves the status of a response with a challenge to a header, from which the front door restores it.

    start: the ASGI message that starts the response.
    """
    if any(name.lower() == _CHALLENGE for name, _ in start["headers"]):
        start["headers"].append((STATUS_HEADER.encode(), str(start["status"]).encode()))
        start["status"] = 200

"""Requests of a client of the API, and API Gateway's events for a function, without the gateway."""

import json
from itertools import count
from typing import Any

from local.gateway import SOURCE_IP, Event, Request, proxy_event

_NUMBERS = count(1)


def request_of(
    method: str,
    target: str,
    token: str | None = None,
    *,
    json_body: Any = None,
    raw_body: bytes | None = None,
    headers: dict[str, str] | None = None,
    source_ip: str = SOURCE_IP,
) -> Request:
    """Returns a request. `target` is a path with its query; `raw_body` is sent unchanged, `json_body` as JSON."""
    body = json.dumps(json_body).encode() if raw_body is None and json_body is not None else raw_body
    sent = {"Accept": "application/json", "User-Agent": "assent-event/1.0"}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    if body is not None:
        sent["Content-Type"] = "application/json"
    return Request(method, target, [*(sent | (headers or {})).items()], body or b"", source_ip)


def rest_event(method: str, target: str, *, resource: str | None = None, token: str | None = None) -> Event:
    """Returns the event of one request. resource: the route in the template; by default, the path itself."""
    request = request_of(method, target, token)
    return proxy_event(request, resource or target.partition("?")[0], f"request-{next(_NUMBERS)}")

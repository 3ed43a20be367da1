"""The events that benchmarks send."""

import json
from typing import Any
from urllib.parse import urlencode

from local import events


def rest_event(
    method: str,
    resource: str,
    *,
    path: dict[str, str] | None = None,
    query: dict[str, str] | None = None,
    body: Any = None,
    form: dict[str, str] | None = None,
    token: str | None = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Returns the event of one request. `resource` is the route in the template; `path` fills its parameters."""
    target = events.route(resource, path or {}) + (f"?{urlencode(query)}" if query else "")
    sent = None if body is None else json.dumps(body).encode()
    if form is not None:
        sent = urlencode(form).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
    return events.rest_event(method, target, resource=resource, token=token, body=sent, headers=headers)

"""The events that benchmarks send."""

import json
from typing import Any
from urllib.parse import quote, urlencode

from local import gateway


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
    target = resource.format_map({name: quote(value) for name, value in (path or {}).items()})
    target += f"?{urlencode(query)}" if query else ""
    sent = None if body is None else json.dumps(body).encode()
    if form is not None:
        sent = urlencode(form).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
    return gateway.rest_event(method, target, resource=resource, token=token, body=sent, headers=headers)

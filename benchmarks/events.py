"""The events that benchmarks send."""

import json
from itertools import count
from typing import Any
from urllib.parse import quote, urlencode

from local.gateway import HOST, Request, proxy_event

_NUMBERS = count(1)


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
    sent = {"Accept": "application/json", "Host": HOST, "User-Agent": "assent-event/1.0"}
    content = b""
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    if body is not None:
        sent["Content-Type"], content = "application/json", json.dumps(body).encode()
    if form is not None:
        sent["Content-Type"], content = "application/x-www-form-urlencoded", urlencode(form).encode()
    request = Request(method, target, [*(sent | (headers or {})).items()], content)
    return proxy_event(request, resource, f"request-{next(_NUMBERS)}")

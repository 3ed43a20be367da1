"""Events of API Gateway for a function, without the gateway."""

from itertools import count

from local.gateway import HOST, SOURCE_IP, Event, Request, proxy_event

_NUMBERS = count(1)


def rest_event(
    method: str,
    target: str,
    *,
    resource: str | None = None,
    token: str | None = None,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    source_ip: str = SOURCE_IP,
) -> Event:
    """Returns the event of one request.

    target: path and query. resource: the route in the template; by default, the path itself. The body is sent as JSON
    unless `headers` names another content type.
    """
    sent = {"Accept": "application/json", "Host": HOST, "User-Agent": "assent-event/1.0"}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    if body is not None:
        sent["Content-Type"] = "application/json"
    request = Request(method, target, [*(sent | (headers or {})).items()], body or b"", source_ip)
    return proxy_event(request, resource or target.partition("?")[0], f"request-{next(_NUMBERS)}")

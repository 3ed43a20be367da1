"""Models API Gateway's REST API: what it does to responses, as AWS documents it.

Every local gateway uses this: the server of `make run`, and the tests' clients of handlers and of emulators, which
don't do it themselves. The table is in "Amazon API Gateway important notes" of the developer guide
(api-gateway-known-issues.html), for responses of Lambda functions.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from controlplane.core.settings import settings
from local.template import load_template

# The gateway adds its own Date and Server.
_REMAPPED = {
    "authorization",
    "connection",
    "content-md5",
    "date",
    "max-forwards",
    "server",
    "user-agent",
    "www-authenticate",
}
_DROPPED = {"expect", "host", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade", "via"}
REMAPPED_PREFIX = "x-amzn-remapped-"

# The type of the gateway's response if no route has the path and the method, and the client sends no signature.
_UNKNOWN_ROUTE = "MISSING_AUTHENTICATION_TOKEN"


class GatewayResponse(NamedTuple):
    """A response of the gateway itself. Names of headers are in lowercase."""

    status: int
    headers: dict[str, str]
    body: str


def rename_headers[Value](headers: Iterable[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """Returns the headers, with lowercase names, that a client gets for the headers of a function's response."""
    lowered = [(name.lower(), value) for name, value in headers]
    return [
        (REMAPPED_PREFIX + name if name in _REMAPPED else name, value)
        for name, value in lowered
        if name not in _DROPPED
    ]


def body_of(response: dict[str, Any]) -> tuple[str, str]:
    """Returns the media type and the body of one of the template's responses, with the address of this process."""
    ((media_type, declared),) = response["ResponseTemplates"].items()
    text, _ = declared["Fn::Sub"]
    return media_type, text.replace("${Address}", settings.public_base_url or "")


def unknown_route(request_id: str) -> GatewayResponse:
    """Returns the template's response to a request that no route has: an unknown path, or another method."""
    (declared,) = [it for it in load_template()["Resources"].values() if it["Type"] == "AWS::Serverless::Api"]
    response = declared["Properties"]["GatewayResponses"][_UNKNOWN_ROUTE]
    media_type, body = body_of(response)
    values = {"context.requestId": request_id}
    headers = {name.lower(): values[value] for name, value in response["ResponseParameters"]["Headers"].items()}
    return GatewayResponse(response["StatusCode"], {"content-type": media_type, **headers}, body)

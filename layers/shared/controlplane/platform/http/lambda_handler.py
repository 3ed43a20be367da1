"""Turns an app into a Lambda handler for API Gateway's REST proxy events."""

import asyncio
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlencode

from fastapi import FastAPI
from mangum import Mangum
from mangum.adapter import DEFAULT_TEXT_MIME_TYPES
from mangum.handlers import APIGateway

from controlplane.platform.core import deadline, lazy_imports
from controlplane.platform.core.observability import count_request
from controlplane.platform.http.route_groups import routes_of

type Handler = Callable[[dict[str, Any], Any], dict[str, Any]]

# Other types would be sent as Base64, which the gateway passes on as it is.
_TEXT_TYPES = [*DEFAULT_TEXT_MIME_TYPES, "image/svg+xml"]
# A path that no function has.
_UNKNOWN_PATH = "/-"
# Requests it, so that nothing is read or counted.
_FIRST_REQUEST: dict[str, Any] = {
    "resource": _UNKNOWN_PATH,
    "path": _UNKNOWN_PATH,
    "httpMethod": "GET",
    "headers": {},
    "multiValueHeaders": {},
    "queryStringParameters": None,
    "multiValueQueryStringParameters": None,
    "pathParameters": None,
    "stageVariables": None,
    "requestContext": {"requestId": "before-the-snapshot", "identity": {}},
    "body": None,
    "isBase64Encoded": False,
}


class _Event(APIGateway):
    """An event whose request is read once and without losing anything, and whatever its Host header is.

    Mangum takes the last of several headers whose names differ only in case. It decodes the path, and the app could
    then find another route than the gateway did. So a path that has more segments than the gateway's route, because of
    an encoded slash, becomes an unknown one. A route such as `/account/{path+}` has any number of segments.
    """

    @property
    def scope(self) -> dict[str, Any]:
        event = self.event
        several = event.get("multiValueHeaders")
        # The console's test of a method sends only single values, and null for no headers.
        several = several or {name: [value] for name, value in (event.get("headers") or {}).items()}
        headers: dict[str, str] = {}
        for name, values in several.items():
            lowered = name.lower()
            # HTTP/2 clients may send one header per cookie (RFC 9113, 8.2.3), and a cookie's value may have commas.
            separator = "; " if lowered == "cookie" else ", "
            value = separator.join(values)
            headers[lowered] = f"{headers[lowered]}{separator}{value}" if lowered in headers else value
        query = event.get("multiValueQueryStringParameters") or event.get("queryStringParameters")
        return {
            "type": "http",
            "http_version": "1.1",
            "method": event["httpMethod"],
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "path": _path(event["path"], event["resource"]),
            "raw_path": None,
            "root_path": "",
            "scheme": "https",
            "query_string": urlencode(query, doseq=True).encode() if query else b"",
            "server": None,
            "client": (event["requestContext"]["identity"].get("sourceIp"), 0),
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "aws.event": event,
            "aws.context": self.context,
        }


def _path(path: str, resource: str) -> str:
    """Returns the decoded path, or an unknown one if it has another number of segments than the gateway's route."""
    segments = path.count("/") if resource.endswith("+}") else resource.count("/")
    decoded = unquote(path) if "%" in path else path
    return decoded if decoded.count("/") == segments else _UNKNOWN_PATH


def create_handler(app: FastAPI) -> Handler:
    """Returns the handler of one function, which also counts requests and server errors by service."""
    # Mangum uses the thread's event loop, which Python 3.13 no longer creates implicitly.
    asyncio.set_event_loop(asyncio.new_event_loop())
    adapter = Mangum(app, lifespan="off", custom_handlers=[_Event], text_mime_types=_TEXT_TYPES)

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        with deadline.invocation(context):
            response = adapter(event, context)
        count_request(failed=response["statusCode"] >= 500)
        return response

    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start":
        # Includes all routes, and everything that a first request initializes, in the snapshot. Restored copies have
        # nothing to reset: no connection, credential, or time is held yet.
        list(routes_of(app.routes))
        adapter(_FIRST_REQUEST, None)  # type: ignore[arg-type]
    lazy_imports.finish()
    return handler

"""Turns an app into a Lambda handler for API Gateway's REST proxy events."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from mangum import Mangum

from controlplane.core import lazy_imports
from controlplane.core.observability import count_request
from controlplane.store import client

# Requests a path that no function has, so it is routed and answered without reading or counting anything.
_FIRST_REQUEST: dict[str, Any] = {
    "resource": "/-",
    "path": "/-",
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


def create_handler(app: FastAPI) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """Returns the handler of one function, which also counts requests and server errors by service."""
    # Mangum uses the thread's event loop, which Python 3.13 no longer creates implicitly.
    asyncio.set_event_loop(asyncio.new_event_loop())
    adapter = Mangum(app, lifespan="off")

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        response = adapter(event, context)
        count_request(failed=response["statusCode"] >= 500)
        return response

    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start":
        # Includes everything that a first request initializes in the snapshot. Restored copies have nothing to reset:
        # no connection, credential, or time is held yet.
        adapter(_FIRST_REQUEST, None)  # type: ignore[arg-type]
        client.prepare()
    lazy_imports.finish()
    return handler

"""From an app to a Lambda handler: API Gateway's REST proxy event in, its answer out."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from mangum import Mangum

from controlplane import diet
from controlplane.observability import count_request
from controlplane.store import client

# To a path that no function has: it is routed and answered, and neither reads nor counts anything.
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
    """The handler of one function. Metrics: requests and server errors, by service."""
    # Mangum asks for the thread's event loop, which Python 3.13 no longer makes by itself.
    asyncio.set_event_loop(asyncio.new_event_loop())
    adapter = Mangum(app, lifespan="off")

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        answer = adapter(event, context)
        count_request(failed=answer["statusCode"] >= 500)
        return answer

    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start":
        # What a first request makes is in the snapshot then. Nothing has to be undone in its copies: no connection, no
        # credential and no time is held yet.
        adapter(_FIRST_REQUEST, None)  # type: ignore[arg-type]
        client.prepare()
    diet.finish()
    return handler

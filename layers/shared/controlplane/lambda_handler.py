"""From an app to a Lambda handler: API Gateway's REST proxy event in, its answer out."""

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from mangum import Mangum

from controlplane import diet
from controlplane.observability import count_request


def create_handler(app: FastAPI) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """The handler of one function. Metrics: requests and server errors, by service."""
    # Mangum asks for the thread's event loop, which Python 3.13 no longer makes by itself.
    asyncio.set_event_loop(asyncio.new_event_loop())
    adapter = Mangum(app, lifespan="off")

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        answer = adapter(event, context)
        count_request(failed=answer["statusCode"] >= 500)
        return answer

    diet.finish()
    return handler

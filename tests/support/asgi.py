"""An API client for tests with several threads: each request goes directly to its function's app.

The Lambda handler serves one request at a time, as Lambda does. The apps themselves must be correct under races.
"""

import asyncio
import importlib
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import httpx

# Loaded before a test's thread loads the first function: the event loop that handlers need is the loading thread's.
import system.app  # noqa: F401
from local.gateway import Request
from tests.support import lagging
from tests.support.api import Api, Reply
from tests.support.operations import operations_at
from tests.support.response_checks import check_response


class DirectApi(Api):
    """Calls operations by path, without the gateway and the handler. Thread-safe."""

    def send(self, request: Request, *, decodes_path: bool = False) -> Reply:
        assert not decodes_path, "only the gateway does that"
        path, url = urlsplit(request.target).path, f"https://api.assent.test{request.target}"
        sent = httpx.Request(request.method, url, headers=request.headers, content=request.body)
        transport = httpx.ASGITransport(_app_of(path), client=(request.source_ip, 443))
        with lagging.deciding(request.method):
            reply = _send(transport, sent)
        check_response(path, dict(sent.headers), reply)
        return reply


def _app_of(path: str) -> Any:
    for operation in operations_at(path):
        return importlib.import_module(f"{operation.group}.app").app
    raise LookupError(f"no function has a route for {path}")


def _send(transport: httpx.ASGITransport, request: httpx.Request) -> Reply:
    """Runs the app until its response is complete, on a temporary event loop."""

    async def respond() -> Reply:
        response = await transport.handle_async_request(request)
        return Reply.read(response.status_code, dict(response.headers), (await response.aread()).decode())

    with closing(asyncio.new_event_loop()) as loop:
        return loop.run_until_complete(respond())

"""An API client for tests with several threads: each request goes directly to its function's app.

The Lambda handler serves one request at a time, as Lambda does. The apps themselves must be correct under races.
"""

import asyncio
import importlib
import json
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

# Loaded before a test's thread loads the first function: the event loop that handlers need is the loading thread's.
import system.app  # noqa: F401
from tests.support import lagging
from tests.support.api import Api, Reply
from tests.support.operations import operations_at
from tests.support.response_checks import check_response


@dataclass
class DirectApi(Api):
    """Calls operations by path, without the gateway and the handler. Thread-safe."""

    def call(
        self,
        method: str,
        target: str,
        token: str | None = None,
        *,
        json_body: Any = None,
        raw_body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        path = urlsplit(target).path
        body = raw_body if raw_body is not None else b"" if json_body is None else json.dumps(json_body).encode()
        sent = {"content-type": "application/json", **({} if token is None else {"authorization": f"Bearer {token}"})}
        sent |= {name.lower(): value for name, value in (headers or {}).items()}
        request = httpx.Request(method, f"https://api.assent.test{target}", headers=sent, content=body)
        transport = httpx.ASGITransport(_app_of(path), client=(self.source_ip, 443))
        with lagging.deciding(method):
            reply = _send(transport, request)
        check_response(path, dict(request.headers), reply)
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

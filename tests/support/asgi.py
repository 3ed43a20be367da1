"""An API client for tests with several threads: each request goes directly to its function's app.

The Lambda handler serves one request at a time, as Lambda does. The apps themselves must be correct under races.
"""

import asyncio
import importlib
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.types import Message

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
        parts = urlsplit(target)
        body = raw_body if raw_body is not None else b"" if json_body is None else json.dumps(json_body).encode()
        sent = {"host": "api.assent.test", "content-type": "application/json", "content-length": str(len(body))}
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        sent.update({name.lower(): value for name, value in (headers or {}).items()})
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
            "client": (self.source_ip, 443),
            "server": ("api.assent.test", 443),
        }
        with lagging.deciding(method):
            reply = _run(_app_of(parts.path), scope, body)
        check_response(parts.path, sent, reply)
        return reply


def _app_of(path: str) -> Any:
    for operation in operations_at(path):
        return importlib.import_module(f"{operation.group}.app").app
    raise LookupError(f"no function has a route for {path}")


def _run(app: Any, scope: dict[str, Any], body: bytes) -> Reply:
    """Runs the app until its response is complete, on a temporary event loop."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(app(scope, receive, send))
    finally:
        loop.close()
    text = b"".join(message.get("body", b"") for message in sent[1:]).decode()
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Reply.read(sent[0]["status"], headers, text)

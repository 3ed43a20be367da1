"""A client of the API that sends REST proxy events through the functions' handlers.

Every response passes `check_response`, so that each test of every suite also checks X-Request-Id, and the envelope or
the common properties of pages.
"""

import importlib
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote, urlencode

from local.events import rest_event
from local.rest_api import unknown_route
from tests.support import lagging
from tests.support.documented import check_documented
from tests.support.operations import operations, operations_at
from tests.support.reply import Reply
from tests.support.response_checks import FORM, check_envelope, check_response, is_oauth

__all__ = ["FORM", "Api", "Reply"]


@cache
def _handlers() -> dict[str, Any]:
    return {group: importlib.import_module(f"{group}.app").handler for group in {o.group for o in operations()}}


class _Context:
    function_name = "test"
    function_version = "1"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:123456789012:function:test"
    aws_request_id = "00000000-0000-0000-0000-000000000000"


@dataclass
class Api:
    """Calls operations by path. `source_ip` is the client's address as the gateway reports it."""

    source_ip: str = "198.51.100.7"
    replies: list[Reply] = field(default_factory=list)

    def get(self, path: str, token: str | None = None, **options: Any) -> Reply:
        return self.call("GET", path, token, **options)

    def post(self, path: str, token: str | None = None, **options: Any) -> Reply:
        return self.call("POST", path, token, **options)

    def put(self, path: str, token: str | None = None, **options: Any) -> Reply:
        return self.call("PUT", path, token, **options)

    def patch(self, path: str, token: str | None = None, **options: Any) -> Reply:
        return self.call("PATCH", path, token, **options)

    def delete(self, path: str, token: str | None = None, **options: Any) -> Reply:
        return self.call("DELETE", path, token, **options)

    def form(self, path: str, fields: dict[str, str]) -> Reply:
        """Sends a form-encoded POST, as OAuth libraries do."""
        return self.call("POST", path, raw_body=urlencode(fields).encode(), headers={"Content-Type": FORM})

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
        """Sends one request. `target` is a path with its query; `raw_body` is sent unchanged, `json_body` as JSON."""
        body = raw_body if raw_body is not None else None if json_body is None else json.dumps(json_body).encode()
        event = rest_event(method, target, token=token, body=body, headers=headers, source_ip=self.source_ip)
        return self.send(event)

    def send(self, event: dict[str, Any]) -> Reply:
        """Sends the request of an event as the gateway does: to the function with the route, or it responds itself."""
        method, context = event["httpMethod"], event["requestContext"]
        # As the client sent it. The event's own may be decoded.
        path, request_id = context["path"].removeprefix(f"/{context['stage']}"), context["requestId"]
        routes = [operation for operation in operations_at(path) if operation.method == method]
        if routes:
            route = routes[0]
            with lagging.deciding(method):
                reply = self._invoke(route.group, {**event, "resource": route.path})
            sent = {name: ", ".join(values) for name, values in event["multiValueHeaders"].items()}
            check_response(path, sent, reply, request_id)
            # Otherwise, the function's router doesn't find the operation that the gateway found.
            if unquote(event["path"]).count("/") == route.path.count("/"):
                check_documented(method, path, reply.status, reply.headers, reply.body, to_form=is_oauth(path, sent))
        else:
            reply = Reply.read(*unknown_route(request_id))
            check_envelope(path, reply, request_id)
        self.replies.append(reply)
        return reply

    def call_app(
        self, method: str, path: str, token: str | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Sends a request to the function that has the path, with any method, and doesn't check the response."""
        return self._invoke(operations_at(path)[0].group, rest_event(method, path, token=token, headers=headers))

    def _invoke(self, group: str, event: dict[str, Any]) -> Reply:
        """Invokes the function. `permissions.caller` reads the variable `group`: the function that makes the calls."""
        return Reply.of_handler(_handlers()[group](event, _Context()))

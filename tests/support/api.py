"""A client of the API that sends requests through the double of the gateway to the functions' handlers.

Every response passes `check_response`, so that each test of every suite also checks X-Request-Id, and the envelope or
the common properties of pages.
"""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote, urlencode

from local.gateway import Event, Gateway, Request, Response, Route
from tests.support import lagging
from tests.support.documented import check_documented
from tests.support.events import request_of
from tests.support.operations import operations, operations_at
from tests.support.reply import Reply
from tests.support.response_checks import FORM, check_envelope, check_page, check_request_id, check_response, is_oauth

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

    def pages(self, path: str, token: str | None = None) -> Iterator[Reply]:
        """Yields the response with each page of a list. path: with a query."""
        reply = self.get(path, token)
        yield reply
        while cursor := reply.body["pagination"]["nextCursor"]:
            reply = self.get(f"{path}&cursor={cursor}", token)
            yield reply

    def form(self, path: str, fields: dict[str, str]) -> Reply:
        """Sends a form-encoded POST, as OAuth libraries do."""
        return self.call("POST", path, raw_body=urlencode(fields).encode(), headers={"Content-Type": FORM})

    def call(self, method: str, target: str, token: str | None = None, **options: Any) -> Reply:
        """Sends one request. options: of `request_of`."""
        return self.send(request_of(method, target, token, source_ip=self.source_ip, **options))

    def send(self, request: Request, *, decodes_path: bool = False) -> Reply:
        """Sends a request through the gateway and checks the response.

        decodes_path: whether the gateway decodes the path for the function.
        """
        method, path = request.method, request.target.partition("?")[0]
        gateway = Gateway(self._invoke_with_decoded_path if decodes_path else self._invoke)
        with lagging.deciding(method):
            response = self._respond(gateway, request)
        reply, request_id = Reply.of_response(response), response.request_id
        sent: dict[str, str] = {}
        for name, value in request.headers:
            sent[name] = f"{sent[name]}, {value}" if name in sent else value
        routes = operations_at(path, method)
        assert reply.headers["strict-transport-security"] == "max-age=31536000"
        if method == "HEAD":
            assert reply.text == ""
            check_request_id(reply, request_id)
        elif not routes and reply.headers["content-type"].startswith("text/html"):
            check_page(reply)
        elif not routes or response.is_own:
            check_envelope(path, reply, request_id)
        else:
            check_response(path, sent, reply, request_id)
            # Otherwise, the function's router doesn't find the operation that the gateway found.
            if unquote(unquote(path) if decodes_path else path).count("/") == routes[0].path.count("/"):
                check_documented(method, path, reply.status, reply.headers, reply.body, to_form=is_oauth(path, sent))
        self.replies.append(reply)
        return reply

    def call_app(
        self, method: str, path: str, token: str | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Sends a request to the function that has the path, with any method, and doesn't check the response."""
        gateway = Gateway(self._invoke, [Route(method, path, operations_at(path)[0].group)])
        request = request_of(method, path, token, headers=headers, source_ip=self.source_ip)
        return Reply.of_response(self._respond(gateway, request))

    def _respond(self, gateway: Gateway, request: Request) -> Response:
        return gateway.respond(request)

    def _invoke_with_decoded_path(self, group: str, event: Event) -> Any:
        return self._invoke(group, event | {"path": unquote(event["path"])})

    @staticmethod
    def _invoke(group: str, event: Event) -> Any:
        """Invokes the function. `permissions.caller` reads the variable `group`: the function that makes the calls."""
        return _handlers()[group](event, _Context())

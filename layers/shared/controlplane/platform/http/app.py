"""The app of a function: its routes, the middleware around them, and its Lambda handler."""

from controlplane.platform.core import lazy_imports  # isort: split

import asyncio
import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote, urlencode

from fastapi import APIRouter, FastAPI
from mangum import Mangum
from mangum.adapter import DEFAULT_TEXT_MIME_TYPES
from mangum.handlers import APIGateway
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controlplane.platform.core import acting, deadline, ids, urls
from controlplane.platform.core.errors import ApiError, Forbidden, InternalError, MethodNotAllowed, RouteNotFound
from controlplane.platform.core.observability import count_limited, count_request, describe, log_request, logger
from controlplane.platform.core.settings import settings
from controlplane.platform.http import deprecations
from controlplane.platform.http.callers import ErrorPage, RequestState
from controlplane.platform.http.client_address import used_front_door
from controlplane.platform.http.route import EVERY_PATH, ControlRoute, RouteGroup, routes_of

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
# Makes browsers use only TLS for this host for a year. Leaves out subdomains and preloading, because an operator's
# domain can have other hosts. Every address of a deployed stack is served over TLS.
TRANSPORT_SECURITY = (b"strict-transport-security", b"max-age=31536000")
# The header in which the front door finds the status of a response with a challenge.
STATUS_HEADER = "x-front-door-status"
_CHALLENGE = b"www-authenticate"
# Only logged: the client closed the connection before it received the response.
_CLIENT_CLOSED_REQUEST = 499

# FastAPI suppresses this warning while it builds body validators. Ours are built later, during the first request.
warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)


class ControlRouter(APIRouter):
    """A router of ControlRoutes. It doesn't redirect: a path with a trailing slash is a different path."""

    def __init__(self, **options: Any) -> None:
        super().__init__(route_class=ControlRoute, redirect_slashes=False, **options)


class NotThroughFrontDoor(Forbidden):
    message = "This address doesn't accept requests. Send them to the service's public address."


class RequestMiddleware:
    """Creates the request's state, limits the time of its calls, handles uncaught errors, and logs one line.

    FastAPI's own middleware is left out: it limits bodies, closes files, and handles errors, as this and `route` do.

    If the front door is required, rejects any other request. HEAD gets the response to GET without its body.

    Every response gets an X-Request-Id header, the headers of the caller's credential, of deprecations, and of a dry
    run, and, unless the endpoint sets another one, Cache-Control: no-store. Over TLS, it has
    Strict-Transport-Security: RFC 6797 (7.2) forbids that without TLS, as on this machine.
    """

    def __init__(
        self, app: ASGIApp, routes: Iterable[BaseRoute] = (), error_page: ErrorPage | None = None, below: str = "/"
    ) -> None:
        """routes: those of the app, for the methods that a path supports. error_page, below: see `create_app`."""
        self.app = app
        self.routes = routes
        self.error_page = error_page
        self.below = below

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started_at = time.perf_counter()
        method = scope["method"]
        if method == "HEAD":
            # Checked, counted, and answered like GET (RFC 9110, section 9.3.2), but for the body.
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        state = RequestState(scope, _request_id(scope))
        urls.read_stage(scope.get("aws.event"))
        state.error_page = self.error_page if scope["path"].startswith(self.below) else None
        uses_front_door = used_front_door(lambda name: Headers(scope=scope).getlist(name))
        app = _reject if settings.front_door_required and not uses_front_door else self.app
        status = 500
        response_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, response_started
            if message["type"] == "http.response.start":
                status, response_started = message["status"], True
                _add_headers(message, state)
                if uses_front_door:
                    _carry_challenge(message)
            try:
                await send(message)
            except OSError:
                raise ClientDisconnect from None

        with acting.request(state.request_id):
            try:
                with deadline.budget(settings.dependency_seconds):
                    await app(scope, receive, send_with_headers)
            except ClientDisconnect:
                # Not a server error. No response can be sent; the request's writes are kept.
                status = _CLIENT_CLOSED_REQUEST
            except Exception as error:  # the outermost handler: every error gets a response and a log line
                answer = self._public_error(error, state)
                if response_started:
                    raise
                await state.failure(answer)(scope, receive, send_with_headers)
        _log(state, method, status, time.perf_counter() - started_at)

    def _public_error(self, error: Exception, state: RequestState) -> ApiError:
        """Returns the response for FastAPI's errors about paths and methods without a route, and for any other one."""
        if isinstance(error, HTTPException) and error.status_code == 404:
            return RouteNotFound()
        if isinstance(error, HTTPException) and error.status_code == 405:
            allowed = _allowed_methods(self.routes, state.scope)
            return MethodNotAllowed(allowed) if allowed else RouteNotFound()
        logger.error("failed", extra={"requestId": state.request_id, "operation": state.operation, **describe(error)})
        return InternalError()


def _without_body(send: Send) -> Send:
    async def send_without_body(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_without_body


async def _reject(scope: Scope, receive: Receive, send: Send) -> None:
    await RequestState.of(scope).failure(NotThroughFrontDoor())(scope, receive, send)


def _add_headers(start: Message, state: RequestState) -> None:
    headers = start.setdefault("headers", [])
    headers.append((b"x-request-id", state.request_id.encode()))
    headers.append(TRANSPORT_SECURITY)
    more = state.caller.headers | deprecations.headers(state.deprecations)
    if state.is_dry_run and start["status"] < 400:
        more["Dry-Run"] = "true"
    headers += [(name.lower().encode(), value.encode()) for name, value in more.items()]
    if not any(name == b"cache-control" for name, _ in headers):
        headers.append((b"cache-control", b"no-store"))


def _request_id(scope: Scope) -> str:
    """Returns an id that begins with the gateway's, so that its log can be joined with ours, or a new id locally."""
    event = scope.get("aws.event") or {}
    return ids.request_id((event.get("requestContext") or {}).get("requestId") or str(uuid.uuid4()))


def _carry_challenge(start: Message) -> None:
    """Moves the status of a response with a challenge to a header, from which the front door restores it.

    API Gateway renames the header WWW-Authenticate of a function's response, and the front door gives it its name back.
    Its function runs only for statuses below 400. docs/decisions/0052-a-front-door-restores-the-challenge.md has the
    reasons.
    """
    if any(name.lower() == _CHALLENGE for name, _ in start["headers"]):
        start["headers"].append((STATUS_HEADER.encode(), str(start["status"]).encode()))
        start["status"] = 200


def _log(state: RequestState, method: str, status: int, seconds: float) -> None:
    """Writes the request's log line, and a metric if the request was rate limited."""
    log_request(
        {
            "requestId": state.request_id,
            "operation": state.operation,
            "method": method,
            "status": status,
            "durationMs": round(seconds * 1000, 1),
            **state.caller.log_fields,
        }
    )
    if status == 429:
        count_limited(state.caller.rate_group)


def _allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> list[str]:
    found = [
        method
        for group in routes
        if group.matches(scope)[0] != Match.NONE
        for route in routes_of([group])
        if route.path != EVERY_PATH and route.matches(scope)[0] != Match.NONE
        for method in route.methods or ()
    ]
    return [*dict.fromkeys(found), *(["HEAD"] if "GET" in found else [])]


class ControlApp(FastAPI):
    """An app whose only middleware is ours."""

    browser_errors: tuple[ErrorPage | None, str] = (None, "/")

    def build_middleware_stack(self) -> ASGIApp:
        return RequestMiddleware(self.router, self.routes, *self.browser_errors)


def create_app(*routers: APIRouter | RouteGroup, error_page: ErrorPage | None = None, below: str = "/") -> FastAPI:
    """Returns the app of one function. Every router must be a ControlRouter, or a group whose module has one.

    Every response, including FastAPI's own 404 and 405, has the format of the API, or that of the route's dialect.
    error_page: renders errors without a dialect for requests that prefer HTML and whose path begins with `below`.
    """
    app = ControlApp(
        title="assent",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=lazy_imports.TELEMETRY_OFF,
    )
    app.browser_errors = error_page, below
    app.router.route_class = ControlRoute
    for router in routers:
        app.router.routes.extend([router] if isinstance(router, RouteGroup) else router.routes)
    return app


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

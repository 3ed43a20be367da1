"""The app factory: builds a FastAPI app that returns every response, including the framework's own, in the envelope.

The route class runs these checks around each endpoint, in the documented order: body size limit (413), authentication
and rate, plan, and scope checks (401, 429, 402, 403), strict JSON (400), FastAPI's validation (400), and resolution of
the organization, resource, and role. A route without credentials (`anonymous`) is rate limited by client address
instead. A page (`visits`) authenticates its session by cookie and renders errors as pages. Every response has an
X-Request-Id header.

This module only wires things together: the rules are in `access`, the response format is in `envelope`.
"""

from controlplane.core import lazy_imports  # isort: split

import inspect
import time
import typing
import uuid
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controlplane.core import deadline, urls
from controlplane.core.errors import (
    ApiError,
    DatabaseUnavailable,
    InternalError,
    InvalidPayload,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    RouteNotFound,
    UnsupportedMediaType,
)
from controlplane.core.observability import count_limited, describe, log_request, logger
from controlplane.core.settings import settings
from controlplane.http import access as gate
from controlplane.http import anonymous as door
from controlplane.http import envelope, strict_json, web_session
from controlplane.http.access import Access, Requires
from controlplane.http.anonymous import Anonymous, AnonymousCaller, Dialect
from controlplane.http.forms import parse_pairs
from controlplane.http.web_session import RequiresSession, WebSession
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.table import TableUnavailable, Throttled

# FastAPI suppresses this warning while it builds body validators. Ours are built later, during the first request.
warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)

MAX_BODY_BYTES = 1_048_576
# Only logged: the client closed the connection before it received the response.
CLIENT_CLOSED_REQUEST = 499
_STATE = "controlplane"
_JSON_HEADERS = {"content-type": "application/json"}


class _State:
    """Per-request state that the log line and the response headers are built from."""

    __slots__ = ("access", "dialect", "headers", "operation", "request_id", "session", "stranger")

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.access: Access[Any] | None = None
        self.stranger = AnonymousCaller("")
        self.session = WebSession("")
        self.dialect: Dialect | None = None
        self.headers: dict[str, str] = {}
        self.operation = "-"


def _requirement(endpoint: Callable[..., Any]) -> tuple[str, Requires | Anonymous | RequiresSession] | None:
    """Returns the name of the parameter that declares the route's requirements, and the requirements."""
    for name, hint in typing.get_type_hints(endpoint, include_extras=True).items():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, Requires | Anonymous | RequiresSession):
                return name, extra
    return None


def _named_parameter(requires: Requires) -> tuple[Any, Any] | None:
    """Returns the annotation and default of the id that the requirement reads from the request."""
    if requires.resource is not None:
        return Annotated[str, Path(alias=requires.resource.parameter)], inspect.Parameter.empty
    if requires.organization == "path":
        return Annotated[str, Path(alias="organizationId")], inspect.Parameter.empty
    if requires.organization == "query":
        description = "The organization to act in. Defaults to the credential's own, or to the saved one."
        return Annotated[str | None, Query(alias="organizationId", min_length=1, description=description)], None
    return None


def _wrap(
    endpoint: Callable[..., Awaitable[Any]],
    place: tuple[str, Requires | Anonymous | RequiresSession] | None,
    status: int,
) -> Callable[..., Any]:
    """Returns the endpoint with the signature that FastAPI sees.

    The access parameter is replaced by the request and by the id that access is resolved from after FastAPI has
    validated the rest. The return value is serialized into the envelope here, so FastAPI encodes nothing.
    """
    parameter, asked = place or ("", None)
    requires = asked if isinstance(asked, Requires) else None

    async def wrapped(wrapped_request: Request, wrapped_id: str | None = None, **arguments: Any) -> Response:
        state: _State = wrapped_request.scope[_STATE]
        if requires is not None:
            caller = state.access
            gate.resolve(caller, requires, wrapped_id)  # type: ignore[arg-type]  # authenticated earlier, or rejected
            arguments[parameter] = caller
        elif asked is not None:
            arguments[parameter] = state.stranger if isinstance(asked, Anonymous) else state.session
        content = await endpoint(**arguments)
        if isinstance(content, Response):
            return content
        if state.dialect is not None:
            return state.dialect.success(content)
        if isinstance(content, envelope.Answer):
            headers = {**_JSON_HEADERS, **content.headers}
            return Response(envelope.success(content.content), content.status or status, headers)
        return Response(envelope.success(content), status, _JSON_HEADERS)

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = inspect.signature(endpoint, eval_str=True).parameters.items()
    shown = [p.replace(kind=keyword) for name, p in own if name != parameter]
    shown.append(inspect.Parameter("wrapped_request", keyword, annotation=Request))
    if requires is not None and (named := _named_parameter(requires)):
        shown.append(inspect.Parameter("wrapped_id", keyword, annotation=named[0], default=named[1]))
    wrapped.__name__, wrapped.__doc__, wrapped.__module__ = endpoint.__name__, endpoint.__doc__, endpoint.__module__
    wrapped.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in shown}
    return wrapped


async def _read_body(request: Request) -> bytes:
    """Returns the whole body. Raises PayloadTooLarge as soon as the size limit is known to be exceeded."""
    declared = request.headers.get("content-length", "")
    # A number too long to be a size isn't converted: int() raises ValueError for more than 4,300 digits.
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > MAX_BODY_BYTES):
        raise PayloadTooLarge
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise PayloadTooLarge
        chunks.append(chunk)
    return b"".join(chunks)


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()


def _meet(request: Request, state: _State, asks: Anonymous) -> None:
    """Stores the caller's address and the dialect of the request. Raises RouteNotFound if the route is disabled."""
    if not asks.offered():
        raise RouteNotFound
    state.stranger = AnonymousCaller(door.address_of(request))
    state.dialect = asks.dialects.get(_media_type(request))


def _admit(request: Request, state: _State, asked: Requires | Anonymous | RequiresSession | None, body: bytes) -> None:
    """Authenticates and rate limits the caller, and checks plan and scope.

    Raises the errors of `access`, `anonymous`, and `web_session`.
    """
    if isinstance(asked, Requires):
        caller = state.access = gate.authenticate(request.headers.get("authorization"), door.address_of(request))
        state.headers = gate.rate_headers(caller.counted)
        gate.check_rate(caller)
        gate.check_plan_and_scope(caller, asked)
    elif isinstance(asked, Anonymous):
        door.admit(state.stranger, asked)
    elif isinstance(asked, RequiresSession):
        state.session = web_session.admit(request, asked, body)
        state.access = state.session.access


def _parse_body(request: Request, body: bytes, dialect: Dialect | None) -> None:
    """Parses the body strictly and stores it where FastAPI reads it. Raises UnsupportedMediaType, InvalidPayload."""
    if dialect is not None:
        _translate_body(request, body, dialect)
        return
    if not body:
        return
    media_type = _media_type(request)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if not (media_type == "application/json" or media_type.endswith("+json")) or encoding != "identity":
        raise UnsupportedMediaType
    try:
        request._json = strict_json.loads(body)
    except strict_json.InvalidJson as error:
        raise InvalidPayload.at([], f"The body is not acceptable JSON: {error}.", "json_invalid") from None


def _translate_body(request: Request, body: bytes, dialect: Dialect) -> None:
    """Parses a body in another dialect and stores its fields where FastAPI reads JSON. Raises InvalidPayload."""
    request._json = dialect.read(body)
    headers = request.headers.mutablecopy()
    headers["content-type"] = _JSON_HEADERS["content-type"]
    request._headers = headers


def _check_query(raw: bytes) -> None:
    """Raises InvalidPayload if a query parameter is repeated or can't be decoded: parsers would read it differently."""
    if not raw:
        return
    try:
        pairs = parse_pairs(raw, 64)
    except ValueError:
        raise InvalidPayload.at([], "The query string is not valid percent-encoded UTF-8.", "query_invalid") from None
    given = Counter(name for name, _ in pairs)
    for name, value in pairs:
        if given[name] > 1:
            raise InvalidPayload.at([name], "This parameter is given more than once.", "repeated")
        if "\0" in value:
            raise InvalidPayload.at([name], "This parameter contains NUL.", "query_invalid")


def _invalid(error: RequestValidationError) -> InvalidPayload:
    """Converts pydantic's errors to the API's format: code, message, path of field names."""
    details = [
        {
            "code": found["type"],
            "message": found["msg"],
            "path": [str(part) for part in found["loc"] if part not in ("body", "query", "path", "header")],
        }
        for found in error.errors()
    ]
    return InvalidPayload(details=details)


class ControlRoute(APIRoute):
    """A route that runs its checks in the documented order and responds with the envelope.

    At most one of these is set: `requires` (requirements on the credential), `anonymous` (requirements on a caller
    without one), or `visits` (requirements of a page). `answers` is the endpoint's return type.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        place = _requirement(endpoint)
        asked = place[1] if place else None
        self.requires = asked if isinstance(asked, Requires) else None
        self.anonymous = asked if isinstance(asked, Anonymous) else None
        self.visits = asked if isinstance(asked, RequiresSession) else None
        self.answers = typing.get_type_hints(endpoint).get("return")
        self.service_endpoint = endpoint
        options["response_model"] = None
        super().__init__(path, _wrap(endpoint, place, options.get("status_code") or 200), **options)
        self.label = f"{next(iter(self.methods or ()))} {path}"

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        inner = super().get_route_handler()
        asked, has_body = self.requires or self.anonymous or self.visits, self.body_field is not None

        async def call(request: Request) -> Response:
            state: _State = request.scope[_STATE]
            state.operation = self.label
            if isinstance(asked, Anonymous):
                _meet(request, state, asked)
            elif isinstance(asked, RequiresSession):
                state.dialect = asked.look
            # FastAPI reads the body again, but the stream is consumed by then.
            body = request._body = await _read_body(request)
            _admit(request, state, asked, body)
            if has_body:
                _parse_body(request, body, state.dialect)
            _check_query(request.scope["query_string"])
            return await inner(request)

        async def handle(request: Request) -> Response:
            try:
                return await call(request)
            except ApiError as error:
                return refuse(request.scope[_STATE], error)
            except (RequestValidationError, UnknownOrganization, Throttled, TableUnavailable) as error:
                return refuse(request.scope[_STATE], _refusal(error))

        return handle


def _refusal(error: Exception) -> ApiError:
    """Maps an exception raised below the endpoint to the error that the client receives."""
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, UnknownOrganization):
        return NotFound()  # it was deleted while this request ran
    if isinstance(error, Throttled):
        logger.warning("throttled", extra=describe(error))
        return RateLimited(1)
    logger.error("table unavailable", extra=describe(error))
    return DatabaseUnavailable()


def refuse(state: _State, error: ApiError) -> Response:
    """Returns the response for an error. Logs its context, which only operators may see."""
    if error.context:
        logger.info("refused", extra={"requestId": state.request_id, "code": error.code, **error.context})
    if state.dialect is not None:
        return state.dialect.failure(error)
    return Response(envelope.failure(error), error.status, {**_JSON_HEADERS, **error.headers})


class ControlRouter(APIRouter):
    """A router of ControlRoutes. It doesn't redirect: a path with a trailing slash is a different path."""

    def __init__(self, **options: Any) -> None:
        super().__init__(route_class=ControlRoute, redirect_slashes=False, **options)


class Edge:
    """The outermost ASGI middleware: adds the request id and rate headers, logs one line, handles uncaught errors."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        state = scope[_STATE] = _State(_request_id(scope))
        urls.read_stage(scope.get("aws.event"))
        status = 500
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                headers = message.setdefault("headers", [])
                headers.append((b"x-request-id", state.request_id.encode()))
                headers += [(name.lower().encode(), value.encode()) for name, value in state.headers.items()]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
            try:
                await send(message)
            except OSError:
                raise ClientDisconnect from None

        try:
            with deadline.budget(settings.dependency_seconds):
                await self.app(scope, receive, send_with_headers)
        except ClientDisconnect:
            # Not a server error. No response can be sent; the request's writes are kept.
            status = CLIENT_CLOSED_REQUEST
        except Exception as error:  # the outermost handler: every error gets a response and a log line
            logger.error(
                "failed", extra={"requestId": state.request_id, "operation": state.operation, **describe(error)}
            )
            if begun:
                raise
            await refuse(state, InternalError())(scope, receive, send_with_headers)
        _log(state, scope, status, time.perf_counter() - started)


def _request_id(scope: Scope) -> str:
    """Returns the gateway's request id, so that its log can be joined with ours, or a new id if run locally."""
    event = scope.get("aws.event") or {}
    return (event.get("requestContext") or {}).get("requestId") or str(uuid.uuid4())


def _log(state: _State, scope: Scope, status: int, seconds: float) -> None:
    line = {
        "requestId": state.request_id,
        "operation": state.operation,
        "method": scope["method"],
        "status": status,
        "durationMs": round(seconds * 1000, 1),
    }
    if state.access is not None:
        principal = state.access.principal
        line["principal"] = principal.kind
        line["caller"] = principal.key_id or principal.user_id
        # An API key's organization is known even if the request was rejected before an organization was resolved.
        if state.access.organization is not None:
            line["organizationId"] = state.access.organization.organization_id
        elif principal.organization_id is not None:
            line["organizationId"] = principal.organization_id
    log_request(line)
    if status == 429:
        count_limited(_kind(state.access))


def _kind(access: Access[Any] | None) -> str:
    """Returns the plan of an API key, `person`, or `anonymous`."""
    if access is None:
        return "anonymous"
    if access.principal.kind == "api_key" and access.principal.token:
        return str(access.principal.token["plan"])
    return "person"


def _allowed_methods(app: FastAPI, scope: Scope) -> list[str]:
    return [
        method
        for route in app.routes
        if isinstance(route, APIRoute) and route.matches(scope)[0] != Match.NONE
        for method in route.methods or ()
    ]


def create_app(*routers: APIRouter) -> FastAPI:
    """Returns the app of one function. Every router must be a ControlRouter."""
    app = FastAPI(
        title="assent",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        strict_content_type=False,
        telemetry=lazy_imports.TELEMETRY_OFF,
    )
    app.router.route_class = ControlRoute
    for router in routers:
        app.router.routes.extend(router.routes)

    async def on_http_exception(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        state: _State = request.scope[_STATE]
        if status == 404:
            return refuse(state, RouteNotFound())
        if status == 405:
            return refuse(state, MethodNotAllowed(_allowed_methods(app, request.scope)))
        return refuse(state, InternalError() if status >= 500 else InvalidPayload(status=status))

    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_middleware(Edge)
    return app


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    await refuse(scope[_STATE], RouteNotFound())(scope, receive, send)


# For a server that mounts several apps: handles paths that don't exist in any of them.
not_found_app: ASGIApp = Edge(_nowhere)

"""The app factory: builds the FastAPI app of one function from its routers."""

from controlplane.core import lazy_imports  # isort: split

import warnings
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from controlplane.core.errors import InternalError, InvalidPayload, MethodNotAllowed, RouteNotFound
from controlplane.http.middleware import RequestMiddleware
from controlplane.http.request_state import RequestState
from controlplane.http.route import ControlRoute
from controlplane.http.route_groups import RouteGroup, routes_of

# FastAPI suppresses this warning while it builds body validators. Ours are built later, during the first request.
warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)


class ControlRouter(APIRouter):
    """A router of ControlRoutes. It doesn't redirect: a path with a trailing slash is a different path."""

    def __init__(self, **options: Any) -> None:
        super().__init__(route_class=ControlRoute, redirect_slashes=False, **options)


def create_app(*routers: APIRouter | RouteGroup) -> FastAPI:
    """Returns the app of one function. Every router must be a ControlRouter, or a group whose module has one.

    Every response, including FastAPI's own 404 and 405, has the format of the API.
    """
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
        app.router.routes.extend([router] if isinstance(router, RouteGroup) else router.routes)

    async def on_http_exception(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        state = RequestState.of(request.scope)
        if status == 404:
            return state.failure(RouteNotFound())
        if status == 405:
            return state.failure(MethodNotAllowed(_allowed_methods(app, request.scope)))
        return state.failure(InternalError() if status >= 500 else InvalidPayload(status=status))

    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_middleware(RequestMiddleware)
    return app


def _allowed_methods(app: FastAPI, scope: Scope) -> list[str]:
    found = [
        method
        for group in app.routes
        if group.matches(scope)[0] != Match.NONE
        for route in routes_of([group])
        if route.matches(scope)[0] != Match.NONE
        for method in route.methods or ()
    ]
    return [*dict.fromkeys(found)]


async def _respond_not_found(scope: Scope, receive: Receive, send: Send) -> None:
    await RequestState.of(scope).failure(RouteNotFound())(scope, receive, send)


# For a server that mounts several apps: handles paths that don't exist in any of them.
not_found_app: ASGIApp = RequestMiddleware(_respond_not_found)

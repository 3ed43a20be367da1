"""The app factory: builds the FastAPI app of one function from its routers."""

from controlplane.platform.core import lazy_imports  # isort: split

import warnings
from typing import Any

from fastapi import APIRouter, FastAPI
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from controlplane.platform.core.errors import ApiError, MethodNotAllowed, RouteNotFound
from controlplane.platform.http.middleware import RequestMiddleware
from controlplane.platform.http.request_state import RequestState
from controlplane.platform.http.route import ControlRoute
from controlplane.platform.http.route_groups import RouteGroup, routes_of

# FastAPI suppresses this warning while it builds body validators. Ours are built later, during the first request.
warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)


class ControlRouter(APIRouter):
    """A router of ControlRoutes. It doesn't redirect: a path with a trailing slash is a different path."""

    def __init__(self, **options: Any) -> None:
        super().__init__(route_class=ControlRoute, redirect_slashes=False, **options)


class ControlApp(FastAPI):
    """An app whose only middleware is ours.

    FastAPI's own limits bodies, closes files, and handles errors, which `route` and `middleware` do, too.
    """

    def build_middleware_stack(self) -> ASGIApp:
        return RequestMiddleware(self._route)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.router(scope, receive, send)
        except HTTPException as error:
            await RequestState.of(scope).failure(self._refusal(error, scope))(scope, receive, send)

    def _refusal(self, error: HTTPException, scope: Scope) -> ApiError:
        """Returns the API's error for a path or method without a route. Raises any other error of FastAPI."""
        if error.status_code == 404:
            return RouteNotFound()
        if error.status_code == 405:
            return MethodNotAllowed(_allowed_methods(self, scope))
        raise error


def create_app(*routers: APIRouter | RouteGroup) -> FastAPI:
    """Returns the app of one function. Every router must be a ControlRouter, or a group whose module has one.

    Every response, including FastAPI's own 404 and 405, has the format of the API.
    """
    app = ControlApp(
        title="assent",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=lazy_imports.TELEMETRY_OFF,
    )
    app.router.route_class = ControlRoute
    for router in routers:
        app.router.routes.extend([router] if isinstance(router, RouteGroup) else router.routes)
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
    return [*dict.fromkeys(found), *(["HEAD"] if "GET" in found else [])]

"""Routes that are imported and built at the first request for one of them, for a function with many.

A route takes more than a millisecond of a cold start, and its module imports what it needs. A cold start answers one
request, so it builds only the routes of that request's group.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import import_module

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from controlplane.platform.core import lazy_imports

_ROUTE = "controlplane.route"


class RouteGroup(BaseRoute):
    """The routes of a module's `router`, in place of these routes. `paths`: those of the routes, as declared there."""

    def __init__(self, module: str, *paths: str) -> None:
        self.module = module
        self.paths = paths
        self._segments = [path.split("/") for path in paths]

    @cached_property
    def routes(self) -> list[APIRoute]:
        with lazy_imports.resumed():
            return list(import_module(self.module).router.routes)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Returns the first full match of the group's routes, or else the first one of another method."""
        found: tuple[Match, Scope] = Match.NONE, {}
        requested = scope["path"].split("/")
        if not any(_may_match(declared, requested) for declared in self._segments):
            return found
        for route in self.routes:
            match, child_scope = route.matches(scope)
            if match.value > found[0].value:
                found = match, {**child_scope, _ROUTE: route}
            if match is Match.FULL:
                break
        return found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope[_ROUTE].handle(scope, receive, send)


def routes_of(routes: Iterable[BaseRoute]) -> Iterator[APIRoute]:
    """Yields an app's routes, with those of groups in their places. Builds them."""
    for route in routes:
        if isinstance(route, RouteGroup):
            yield from route.routes
        elif isinstance(route, APIRoute):
            yield route


def _may_match(declared: list[str], requested: list[str]) -> bool:
    """Returns False if a route of that path can't match. Compiling the path's expression would take longer."""
    takes_rest = declared[-1].endswith(":path}")
    if len(declared) != len(requested) and not (takes_rest and len(declared) < len(requested)):
        return False
    return all(name.startswith("{") or name == segment for name, segment in zip(declared, requested, strict=False))

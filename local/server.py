"""One ASGI app in front of every function's app, as API Gateway is on AWS. Every edit imports it again."""

import importlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from logging import LogRecord
from multiprocessing.connection import wait
from typing import Any, cast

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from controlplane.http.app import not_found_app
from local.checkout import DIRECTORY, ROOT
from local.github import setup
from local.github.app import create_app
from local.github.stand_in import StandIn
from local.queues import start_pollers
from local.schedules import start_schedules


def load_apps() -> dict[str, Any]:
    """Returns the app of every function by name. Workers have no app."""
    names = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))
    modules = {name: importlib.import_module(f"{name}.app") for name in names}
    return {name: module.app for name, module in modules.items() if hasattr(module, "app")}


def without_query() -> Callable[[LogRecord], bool]:
    """Filters uvicorn's access log: removes each request's query, which can contain sign-in codes."""

    def shorten(record: LogRecord) -> bool:
        address, method, target, *more = cast("tuple[Any, ...]", record.args)
        record.args = (address, method, target.partition("?")[0], *more)
        return True

    return shorten


class Gateway:
    """Hands each request to the app that has its route, and to `not_found` if none has.

    As in API Gateway the path with fewer parameters wins. A path that is known with other methods only goes to the app
    that knows it, which answers 405.
    """

    def __init__(self, apps: dict[str, Any], not_found: ASGIApp = not_found_app) -> None:
        self._routes: list[tuple[BaseRoute, ASGIApp]] = [(route, app) for app in apps.values() for route in app.routes]
        self._not_found = not_found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._find(scope)(scope, receive, send)
        elif scope["type"] == "lifespan":
            await _answer_lifespan(receive, send)

    def _find(self, scope: Scope) -> ASGIApp:
        best, best_rank = self._not_found, (Match.NONE.value, 0)
        for route, app in self._routes:
            match, child_scope = route.matches(scope)
            rank = (match.value, -len(child_scope.get("path_params", {})))
            if match != Match.NONE and (best is self._not_found or rank > best_rank):
                best, best_rank = app, rank
        return best


async def _answer_lifespan(receive: Receive, send: Send) -> None:
    """Accepts the lifespan protocol without doing anything: the functions have no lifespan on AWS either."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _end_with_parent() -> None:
    """Stops this process when the one that watches the files is gone, even where that one was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


threading.Thread(target=_end_with_parent, daemon=True).start()

_github = Starlette(routes=[Mount(setup.PREFIX, create_app(StandIn(DIRECTORY / setup.FOLDER)))])

if multiprocessing.parent_process() is not None:  # the server; a test that imports this has no queues
    start_pollers()
    start_schedules()

app = Gateway(load_apps() | {"github": _github})

"""The routes of every function."""

import importlib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from controlplane.access.access import Requires
from controlplane.access.anonymous import Anonymous
from controlplane.access.web_session import RequiresSession
from controlplane.platform.http.route import EVERY_PATH, ControlRoute, routes_of

FUNCTIONS = Path(__file__).parents[2] / "functions"


@dataclass(frozen=True)
class Operation:
    """One route of one function, and the requirements on its caller. At most one of the three kinds is not None."""

    group: str
    method: str
    path: str
    route: ControlRoute

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def requires(self) -> Requires | None:
        return self.route.requirements_as(Requires)

    @property
    def anonymous(self) -> Anonymous | None:
        return self.route.requirements_as(Anonymous)

    @property
    def requires_session(self) -> RequiresSession | None:
        return self.route.requirements_as(RequiresSession)


@cache
def operations() -> list[Operation]:
    """Returns every route of every function that has an app. The generated tests run over them."""
    modules = {
        path.parent.name: importlib.import_module(f"{path.parent.name}.app") for path in FUNCTIONS.glob("*/routes.py")
    }
    return [
        Operation(group, method, route.path, route)
        for group, module in sorted(modules.items())
        # Workers have only a handler.
        if hasattr(module, "app")
        for route in routes_of(module.app.routes)
        for method in sorted(route.methods)
    ]


@lru_cache(maxsize=4_096)
def operations_at(path: str, method: str | None = None) -> tuple[Operation, ...]:
    """Returns the operations of the path, by default with any method: of the route with the fewest parameters."""
    known = (operation for operation in operations() if method in {None, operation.method})
    found = [operation for operation in known if operation.route.path_regex.match(path)]
    fewest = min(map(_parameters, found), default=0)
    return tuple(operation for operation in found if _parameters(operation) == fewest)


def _parameters(operation: Operation) -> int:
    """Returns the number of the path's parameters. The route for all other addresses comes last."""
    return 99 if operation.path == EVERY_PATH else operation.path.count("{")


def is_page(path: str, *, accepts_html: bool = False) -> bool:
    """Returns True if the path returns HTML even for errors: a page for people or, if it accepts HTML, no page."""
    sessions = [operation.requires_session for operation in operations_at(path)]
    return any(it is not None and (accepts_html or it.dialect) for it in sessions)

"""The routes of every function."""

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from controlplane.http.access import Requires
from controlplane.http.anonymous import Anonymous
from controlplane.http.route import ControlRoute
from controlplane.http.web_session import RequiresSession

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
        for route in module.app.routes
        for method in sorted(route.methods)
    ]


def operations_at(path: str) -> list[Operation]:
    """Returns the operations of the path, with any method."""
    return [operation for operation in operations() if operation.route.path_regex.match(path)]


def is_page(path: str) -> bool:
    """Returns True if the path is a page for people, which returns HTML even for errors."""
    return any(operation.requires_session is not None for operation in operations_at(path))

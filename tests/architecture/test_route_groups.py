"""A cold start imports only the routes of the requested group; a snapshot contains all of them."""

import importlib
import json
from pathlib import Path

import pytest
from starlette.routing import Match

from controlplane.platform.http.route import RouteGroup
from tests.support.cold_start import run_as_lambda
from tests.support.operations import operations

ROOT = Path(__file__).parents[2]
FUNCTIONS = ("code_audit", "dashboard", "organizations")
GROUPS = {
    name: [it for it in importlib.import_module(f"{name}.app").app.routes if isinstance(it, RouteGroup)]
    for name in FUNCTIONS
}
PAGES = sorted(group.module for group in GROUPS["dashboard"])

PROGRAM = """
import json, os, sys
from dashboard.app import handler
event = {
    "resource": "/assets/{fileName}", "path": "/assets/none", "httpMethod": "GET", "headers": {},
    "multiValueHeaders": {}, "requestContext": {"requestId": "r", "identity": {}}, "body": None,
}
def imported():
    modules = [(name, it) for name, it in sys.modules.items() if name.startswith("dashboard.")]
    return sorted(name for name, module in modules if hasattr(module, "router"))
before = imported()
assert handler(event, None)["statusCode"] == 404
print(json.dumps([before, imported()]))
"""


def imported(initialization: str) -> list[list[str]]:
    """Returns the modules of routes that are imported before and after the first request, for a file."""
    settings = {"AWS_LAMBDA_INITIALIZATION_TYPE": initialization, "POWERTOOLS_SERVICE_NAME": "dashboard"}
    found: list[list[str]] = json.loads(run_as_lambda(PROGRAM, **settings)[-1])
    return found


def test_every_group_has_the_paths_of_its_module():
    for name, groups in GROUPS.items():
        folder = ROOT / "functions" / name
        routers = [path for path in folder.rglob("*.py") if "\nrouter = " in path.read_text()]
        modules = {".".join([name, *path.relative_to(folder).with_suffix("").parts]) for path in routers}
        assert {group.module for group in groups} == modules
        for group in groups:
            # Pages list the beginnings of their paths.
            if name != "dashboard":
                assert sorted(group.paths) == sorted({route.path for route in group.routes}), group.module


def test_a_request_imports_only_its_group():
    assert imported("on-demand") == [[], ["dashboard.other_addresses"]]


def test_a_snapshot_has_every_group():
    assert imported("snap-start") == [PAGES, PAGES]


def test_a_group_matches_what_its_routes_match():
    """For every path and method, also with names that no path has, the first full match is that of the flat routes."""
    routes = [operation.route for operation in operations() if operation.group in GROUPS]
    paths = {route.path.replace("{", "").replace("}", "") for route in routes}
    all_groups = [group for groups in GROUPS.values() for group in groups]
    for path in [*paths, "", "//", *(f"{path}/" for path in paths), *(f"{path}/more" for path in paths)]:
        for method in ("GET", "POST", "PUT"):
            scope = {"type": "http", "path": path, "root_path": "", "method": method}
            for group in all_groups:
                expected = max((route.matches(scope)[0].value for route in group.routes), default=0)
                match, child_scope = group.matches(scope)
                assert match.value == expected, (method, path, group.module)
                if match is Match.FULL:
                    first = next(route for route in group.routes if route.matches(scope)[0] is Match.FULL)
                    assert child_scope["endpoint"] is first.endpoint


@pytest.mark.parametrize(("requested", "count"), [("/files", 0), ("/files/a", 1), ("/files/a/b", 1), ("/other/a", 0)])
def test_the_rest_of_a_path_is_matched_by_its_beginning(requested: str, count: int):
    group = RouteGroup("dashboard.other_addresses", "/files/{name:path}")
    group.matches({"type": "http", "path": requested, "root_path": "", "method": "GET"})
    assert ("routes" in vars(group)) == bool(count)

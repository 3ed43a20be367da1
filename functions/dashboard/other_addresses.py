"""Answers browsers at addresses that no page has: with files, or with a page that says so.

The other routes come first, so these get only what no other one has, in this function or another. A client that
doesn't accept HTML gets a response in the API's format.
"""

from typing import Annotated

from fastapi import Path, Response
from starlette.routing import Match

from controlplane.platform.core.errors import RouteNotFound
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.route import EVERY_PATH
from dashboard import routes
from dashboard.assets import asset_response, icon_response
from dashboard.errors import OnlyTakesForms
from dashboard.parameters import Lost

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_ALLOWED = ("/$", "/docs", "/llms.txt", "/openapi.json", "/pricing", "/status")
_ROBOTS = "".join(["User-agent: *\n", *(f"Allow: {path}\n" for path in _ALLOWED), "Disallow: /\n"])


@router.get("/assets/{fileName}")
async def get_asset(file_name: Annotated[str, Path(alias="fileName")]) -> Response:
    """Returns the style sheet or the script. The name must be that of the current version."""
    return asset_response(file_name)


@router.get("/favicon.ico")
async def get_icon() -> Response:
    """Returns the icon for clients that don't read the pages' own link to it."""
    return icon_response()


@router.get("/robots.txt")
async def get_robots() -> Response:
    """Asks search engines to ignore the pages, except for the reference."""
    return Response(_ROBOTS, media_type="text/plain")


@router.get(EVERY_PATH)
async def show_nothing(session: Lost) -> Response:
    """Says that there is no such page, or leads from the address of a form to its page (`errors`)."""
    here = {"type": "http", "method": "GET", "path": session.path}
    takes_forms = any(group.matches(here)[0] is Match.PARTIAL for group in routes.GROUPS[:-1])
    raise OnlyTakesForms if takes_forms else RouteNotFound

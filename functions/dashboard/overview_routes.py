"""The overview, or the welcome page for users who are signed out, and the style sheet."""

from typing import Annotated

from fastapi import Path, Response

from controlplane.core.errors import RouteNotFound
from controlplane.http.app import ControlRouter
from dashboard.organizations import OVERVIEW_INVITATIONS, get_overview
from dashboard.page_parameters import Anyone
from dashboard.pages import page, style, style_sheet

router = ControlRouter(tags=["Pages"], include_in_schema=False)


@router.get("/", operation_id="showOverview")
async def show_overview(session: Anyone) -> Response:
    """Shows the user's organizations and pending invitations, or a welcome page if signed out."""
    if session.access is None:
        return page("welcome", session)
    overview = get_overview(session.user_id, OVERVIEW_INVITATIONS)
    return page("overview", session, current="/", **overview._asdict())


@router.get("/assets/{fileName}", operation_id="getAsset")
async def get_asset(file_name: Annotated[str, Path(alias="fileName")]) -> Response:
    """Returns the style sheet. The name must be that of the current version."""
    if file_name != style()[0]:
        raise RouteNotFound
    return style_sheet()

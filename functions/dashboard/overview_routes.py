"""The overview, or the welcome page for users who are signed out, and the static files."""

from typing import Annotated

from fastapi import Path, Response

from controlplane.platform.http.app import ControlRouter
from dashboard import invitations
from dashboard.page_parameters import Anyone
from dashboard.pages import asset_response, page

router = ControlRouter(tags=["Pages"], include_in_schema=False)


@router.get("/", operation_id="showOverview")
async def show_overview(session: Anyone) -> Response:
    """Shows the user's organizations and pending invitations, or a welcome page if signed out."""
    if session.access is None:
        return page("welcome", session)
    received = invitations.list_received(session.account, invitations.ON_OVERVIEW)
    return page("overview", session, current="/", received=received)


@router.get("/assets/{fileName}", operation_id="getAsset")
async def get_asset(file_name: Annotated[str, Path(alias="fileName")]) -> Response:
    """Returns the style sheet or the script. The name must be that of the current version."""
    return asset_response(file_name)

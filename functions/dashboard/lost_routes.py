"""Responses to browsers at addresses that aren't pages: a page that says so, or the page with the form.

The other routes come first, so these get only what no other one has. Addresses at other depths get a response in the
API's format.
"""

from fastapi import Response

from controlplane.platform.core.errors import RouteNotFound
from controlplane.platform.http.app import ControlRouter
from dashboard.page_parameters import Anyone, Lost
from dashboard.pages import address, icon_response, redirect

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# Paths that only take forms, and the names of their operations. The page with the form is one level up.
_FORMS = {
    "/sign-out": "leaveSignOut",
    "/device/approve": "leaveApproveDevice",
    "/device/deny": "leaveDenyDevice",
    "/account/notifications/resume": "leaveResumeEmails",
    "/account/unsubscribe/{link}/all": "leaveUnsubscribeFromAll",
    "/invitations/accept": "leaveAcceptInvitation",
    "/invitations/decline": "leaveDeclineInvitation",
    "/invitations/block": "leaveBlockOrganization",
    "/invitations/unblock": "leaveUnblockOrganization",
    "/sessions/revoke": "leaveEndSession",
    "/sessions/revoke-others": "leaveEndOtherSessions",
    "/organizations/{organizationSlug}/repositories/{repositoryId}/links": "leaveSaveRepositoryLink",
    "/organizations/{organizationSlug}/inbox/{itemId}/issue": "leaveOpenIssue",
    "/organizations/{organizationSlug}/inbox/{itemId}/vendor": "leaveDecideFindingVendor",
    "/organizations/{organizationSlug}/keys/{keyId}/roll": "leaveSubmitKeyRoll",
    "/organizations/{organizationSlug}/keys/{keyId}/revoke": "leaveSubmitKeyRevocation",
    "/organizations/{organizationSlug}/webhooks/{webhookId}/status": "leaveSubmitWebhookStatus",
    "/organizations/{organizationSlug}/webhooks/{webhookId}/rotate": "leaveSubmitWebhookRotation",
    "/organizations/{organizationSlug}/webhooks/{webhookId}/delete": "leaveSubmitWebhookDeletion",
    "/organizations/{organizationSlug}/webhooks/{webhookId}/deliveries/{eventId}/replay": "leaveSubmitWebhookReplay",
    "/organizations/{organizationSlug}/members/change": "leaveSubmitMember",
    "/organizations/{organizationSlug}/members/resend": "leaveSubmitResend",
    "/organizations/{organizationSlug}/members/withdraw": "leaveSubmitWithdrawal",
}


_ELSEWHERE = {
    "/{page}": "showNothing",
    "/account/{page}": "showNothingOfAccount",
    "/organizations/{organizationSlug}/{page}": "showNothingOfOrganization",
    "/organizations/{organizationSlug}/{area}/{page}": "showNothingOfArea",
    "/organizations/{organizationSlug}/{area}/{name}/{page}": "showNothingOfResource",
}
_ROBOTS = "User-agent: *\nAllow: /docs\nAllow: /llms.txt\nAllow: /openapi.json\nDisallow: /\n"


async def show_form(session: Anyone) -> Response:
    """Redirects a browser that opens the address of a form, for example to reload what a form returned."""
    return redirect(address(session.path.rpartition("/")[0] or "/"))


for _path, _operation in _FORMS.items():
    router.add_api_route(_path, show_form, methods=["GET"], operation_id=_operation)


@router.get("/favicon.ico", operation_id="getIcon")
async def get_icon() -> Response:
    """Returns the icon for clients that don't read the pages' own link to it."""
    return icon_response()


@router.get("/robots.txt", operation_id="getRobots")
async def get_robots() -> Response:
    """Asks search engines to ignore the pages, except for the reference."""
    return Response(_ROBOTS, media_type="text/plain")


async def show_nothing(_session: Lost) -> Response:
    """Says that there is no such page."""
    raise RouteNotFound


for _path, _operation in _ELSEWHERE.items():
    router.add_api_route(_path, show_nothing, methods=["GET"], operation_id=_operation)

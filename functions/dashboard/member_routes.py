"""The page of members and invitations: list, invite, change roles, and remove."""

from collections.abc import Callable, Mapping
from typing import Final

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.organizations.store import Membership
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.http.app import ControlRouter
from dashboard import members
from dashboard.organizations import get_organization, is_admin
from dashboard.page_parameters import Done, OrganizationSlug, SignedIn, Submits, Text
from dashboard.pages import address, page, redirect

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_DONE: Final = {
    "invited": "The invitation is created. Send the link below to the person, who signs in with the invited address.",
    "mailed": "The invitation is created. An email with the link is on its way.",
    "resent": "The invitation is renewed, and another email is on its way. Earlier links still work.",
    "renewed": "The invitation is renewed for seven days. Send the link below to the person. Earlier links still work.",
    "withdrawn": "The invitation is withdrawn. It can no longer be accepted.",
    "changed": "The role is changed.",
    "removed": "The member is removed, and has lost access.",
}
# The page's texts about an invitation whose email didn't arrive.
_OUTCOMES: Final = {
    "failed": "Email not delivered",
    "returned": "Email returned: the address doesn't exist, or accepts no mail",
    "complained": "Reported as spam: no more emails to this address",
    "stopped": "This address receives no emails. Send the link yourself",
    "limited": "Email not sent: too many invitation emails today. Send the link yourself, or resend it tomorrow",
}


@router.get("/organizations/{organizationSlug}/members", operation_id="showMembers")
async def show_members(
    session: SignedIn, organization_slug: OrganizationSlug, after: Text = None, done: Done = ""
) -> Response:
    """Lists the members and the pending invitations. Admins and owners can change them."""
    return _members(session, organization_slug, after=after, done=_DONE.get(done))


@router.post("/organizations/{organizationSlug}/members", operation_id="submitInvitation")
async def submit_invitation(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Invites an email address."""
    return _submitted(session, organization_slug, members.invite)


@router.post("/organizations/{organizationSlug}/members/change", operation_id="submitMember")
async def submit_member(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Changes a member's role, or removes the member."""
    return _submitted(session, organization_slug, members.change_member)


@router.post("/organizations/{organizationSlug}/members/withdraw", operation_id="submitWithdrawal")
async def submit_withdrawal(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Withdraws a pending invitation."""
    return _submitted(session, organization_slug, members.withdraw)


@router.post("/organizations/{organizationSlug}/members/resend", operation_id="submitResend")
async def submit_resend(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Sends a pending invitation again."""
    return _submitted(session, organization_slug, members.resend)


def _submitted(
    session: WebSession, organization_slug: str, change: Callable[[Membership, Mapping[str, str], str], str]
) -> Response:
    """Makes the change of the form. Redirects to the page, which confirms it, or shows the page with the error."""
    organization = get_organization(organization_slug, session.account)
    try:
        done = change(organization, session.form, session.user_id)
    except ApiError as failure:
        return _members(session, organization_slug, failure=failure)
    return redirect(address(f"/organizations/{organization.slug}/members?done={done}"))


def _members(
    session: WebSession,
    organization_slug: str,
    *,
    after: str | None = None,
    failure: ApiError | None = None,
    done: str | None = None,
) -> Response:
    shown = members.get_members(organization_slug, session.account, session.user_id, after)
    return page(
        "members",
        session,
        failure=failure,
        done=done,
        **shown._asdict(),
        entered=session.form if failure else {},
        is_admin=is_admin(shown.organization),
        invitable=members.invitable_roles(shown.organization),
        invitation_link=f"{dashboard_base_url()}/invitations",
        sends_emails=settings.email_sender is not None,
        outcomes=_OUTCOMES,
    )

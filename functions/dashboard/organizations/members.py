"""The page of members and invitations: list, invite, change roles, and remove."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.notify import subscriptions
from controlplane.notify.subscriptions import Stop, StopReason
from controlplane.organizations import invitations, members, sending
from controlplane.organizations import store as organizations
from controlplane.organizations.invitations import UnknownInvitation
from controlplane.organizations.members import UnknownMember
from controlplane.organizations.store import MemberItem
from controlplane.platform.core import ids
from controlplane.platform.core.errors import ApiError, NotFound, known
from controlplane.platform.core.ids import InvitationId, MemberId
from controlplane.platform.core.naming import is_email, normalize_email
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from controlplane.platform.table.parallel import read_both
from controlplane.platform.table.table import QueryPage
from dashboard.forms import NotAcceptable, read_choice
from dashboard.pages import page, redirect_within
from dashboard.parameters import AdminSubmits, MemberSees

router = ControlRouter(tags=["Pages"], include_in_schema=False)

PER_PAGE = 50
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


class NoMember(NotFound):
    message = "This person is no longer a member of the organization."


class Row(NamedTuple):
    """A member, the roles that the user may give, and whether the user may remove the member.

    is_last_owner: the organization has no other owner, so the member must stay one. stopped: why the address gets no
    emails, or None if it does or if the user isn't an admin.
    """

    member: MemberItem
    roles: list[Role]
    removable: bool
    is_you: bool
    is_last_owner: bool
    stopped: StopReason | None


@router.get("/organizations/{organizationSlug}/members")
async def show_members(session: MemberSees) -> Response:
    """Lists the members and the pending invitations. Admins and owners can change them."""
    return _members(session)


@router.post("/organizations/{organizationSlug}/members")
async def submit_invitation(session: AdminSubmits) -> Response:
    """Invites an email address."""
    email = session.form.get("email", "").strip()
    try:
        role = _read_role(session)
        if not is_email(email):
            raise NotAcceptable("Enter an email address, for example ada@example.com.")
        sending.create_invitation(session.user_id, session.organization, email, role, {})
    except ApiError as failure:
        return _members(session, failure)
    return _done(session, "mailed" if settings.email_sender else "invited")


@router.post("/organizations/{organizationSlug}/members/change")
async def submit_member(session: AdminSubmits) -> Response:
    """Changes a member's role, or removes the member."""
    here, is_removal = session.organization, session.form.get("action") == "remove"
    try:
        member = _get_member(session)
        if is_removal:
            members.delete_member(session.user_id, here, member)
        else:
            members.update_member(session.user_id, here, member, _read_role(session))
    except ApiError as failure:
        return _members(session, failure)
    return _done(session, "removed" if is_removal else "changed")


@router.post("/organizations/{organizationSlug}/members/withdraw")
async def submit_withdrawal(session: AdminSubmits) -> Response:
    """Withdraws a pending invitation."""
    try:
        invitation = known(invitations.find_invitation(_read_invitation_id(session)), UnknownInvitation)
        invitations.delete_invitation(invitation, session.user_id, "admin")
    except ApiError as failure:
        return _members(session, failure)
    return _done(session, "withdrawn")


@router.post("/organizations/{organizationSlug}/members/resend")
async def submit_resend(session: AdminSubmits) -> Response:
    """Sends a pending invitation again."""
    try:
        sending.resend_invitation(session.user_id, session.organization, _read_invitation_id(session))
    except ApiError as failure:
        return _members(session, failure)
    return _done(session, "resent" if settings.email_sender else "renewed")


def _read_role(session: WebSession) -> Role:
    return read_choice(session.form, "role", RANK, "Choose a role.")


def _read_invitation_id(session: WebSession) -> InvitationId:
    return session.own(InvitationId, session.form.get("invitation_id", ""), UnknownInvitation)


def _get_member(session: WebSession) -> MemberItem:
    member_id = session.own(MemberId, session.form.get("member_id", ""), NoMember)
    try:
        return members.get_member(member_id.organization_id, f"{ids.USER}_{member_id.local}")
    except UnknownMember:
        raise NoMember from None


def _done(session: WebSession, done: str) -> Response:
    return redirect_within(session.organization, f"/members?done={done}")


def _members(session: WebSession, failure: ApiError | None = None) -> Response:
    here = session.organization
    codec = CursorCodec(session.parameters.get("after"), "showMembers", here.organization_id)
    ((listed, stops), organization), pending = read_both(
        lambda: read_both(
            lambda: _list_members(session, codec.after),
            lambda: organizations.get_organization(here.organization_id),
        ),
        lambda: invitations.list_invitations(here.organization_id, PER_PAGE, None, consistent=True),
    )
    return page(
        "members",
        session,
        failure,
        done=_DONE,
        rows=[_row(session, member, organization.owners, stops) for member in listed.items],
        next_cursor=codec.cursor(listed.next_sk),
        invitations=pending.items,
        has_more=pending.next_sk is not None,
        invitable=[role for role in RANK if members.may_change(here, role)],
        invitation_link=f"{dashboard_base_url()}/invitations",
        sends_emails=settings.email_sender is not None,
        outcomes=_OUTCOMES,
    )


def _list_members(session: WebSession, position: str | None) -> tuple[QueryPage[MemberItem], Mapping[str, Stop]]:
    """Returns a page of members and, for admins, which of their addresses get no emails."""
    listed = members.list_members(session.organization.organization_id, PER_PAGE, position, consistent=True)
    return listed, subscriptions.find_stops(it.email for it in listed.items) if session.is_admin else {}


def _row(session: WebSession, member: MemberItem, owners: int, stops: Mapping[str, Stop]) -> Row:
    is_you, is_last_owner = member.user_id == session.user_id, member.role == "owner" and owners < 2
    grantable = [role for role in RANK if members.may_change(session.organization, member.role, role)]
    roles = [] if is_last_owner else grantable
    stop = stops.get(normalize_email(member.email))
    return Row(member, roles, bool(roles) and not is_you, is_you, is_last_owner, stop.reason if stop else None)

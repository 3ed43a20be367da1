"""Business rules of the members' page: who belongs to an organization, who is invited, and what the user may change."""

from collections.abc import Mapping
from typing import NamedTuple

from controlplane.notify import mail_addresses
from controlplane.notify.mail_addresses import Stop, StopReason
from controlplane.organizations import invitations, members
from controlplane.organizations import member_rules as rules
from controlplane.organizations import store as organizations
from controlplane.organizations.invitations import UnknownInvitation
from controlplane.organizations.items import InvitationItem
from controlplane.organizations.members import MemberPage
from controlplane.organizations.store import Account, MemberItem, Membership
from controlplane.platform.core import ids
from controlplane.platform.core.emails import is_email, normalize_email
from controlplane.platform.core.errors import Forbidden, NotFound
from controlplane.platform.core.ids import InvitationId, MemberId
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.core.settings import settings
from controlplane.platform.table.parallel import read_both
from dashboard.forms import NotAcceptable
from dashboard.organizations import get_organization, is_admin, require_admin

PER_PAGE = 50


class NotMemberAdmin(Forbidden):
    message = "Only admins and owners can invite people, change roles, and remove members. Ask one of them."


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


class ShownMembers(NamedTuple):
    """A page of members with what the user may change, and the latest pending invitations.

    next_after: the ID after which the next page starts, None on the last page. has_more: whether there are further
    invitations.
    """

    organization: Membership
    rows: list[Row]
    next_after: str | None
    invitations: list[InvitationItem]
    has_more: bool


def get_members(organization_slug: str, account: Account, user_id: str, after: str | None) -> ShownMembers:
    """Returns a page of one of the account's organizations, after the member with this ID. Raises NotMember."""
    membership = get_organization(organization_slug, account)
    organization_id = membership.organization_id
    last = MemberId.parse(after or "")
    is_own = last is not None and last.organization_id == organization_id
    position = members.position_of(last) if last is not None and is_own else None
    ((page, stops), organization), pending = read_both(
        lambda: read_both(
            lambda: _list_members(membership, position),
            lambda: organizations.get_organization(organization_id),
        ),
        lambda: invitations.list_invitations(organization_id, PER_PAGE, None, consistent=True),
    )
    rows = [_row(membership, user_id, member, organization.owners, stops) for member in page.members]
    next_after = page.members[-1].member_id if page.next_sk is not None else None
    return ShownMembers(membership, rows, next_after, pending.invitations, pending.next_sk is not None)


def _list_members(caller: Membership, position: str | None) -> tuple[MemberPage, Mapping[str, Stop]]:
    """Returns a page of members and, for admins, which of their addresses get no emails."""
    page = members.list_members(caller.organization_id, PER_PAGE, position, consistent=True)
    return page, mail_addresses.find_stops(it.email for it in page.members) if is_admin(caller) else {}


def _row(caller: Membership, caller_id: str, member: MemberItem, owners: int, stops: Mapping[str, Stop]) -> Row:
    is_you, is_last_owner = member.user_id == caller_id, member.role == "owner" and owners < 2
    grantable = [role for role in RANK if rules.may_change(caller, member.role, role)]
    roles = [] if is_last_owner else grantable
    stop = stops.get(normalize_email(member.email))
    return Row(member, roles, bool(roles) and not is_you, is_you, is_last_owner, stop.reason if stop else None)


def invitable_roles(caller: Membership) -> list[Role]:
    """Returns the roles to which the user may invite."""
    return [role for role in RANK if rules.may_change(caller, role)]


def invite(organization: Membership, form: Mapping[str, str], user_id: str) -> str:
    """Invites the address of the form. Returns the code of the confirmation.

    Raises NotMemberAdmin, NotAcceptable, OwnerRequired, AlreadyMember, AlreadyInvited, TooManyInvitations,
    AddressNotInvitable, Forbidden.
    """
    require_admin(organization, NotMemberAdmin)
    email, role = form.get("email", "").strip(), _read_role(form)
    if not is_email(email):
        raise NotAcceptable("Enter an email address, for example ada@example.com.")
    rules.create_invitation(user_id, organization, email, role, {})
    return "mailed" if settings.email_sender else "invited"


def withdraw(organization: Membership, form: Mapping[str, str], user_id: str) -> str:
    """Cancels the invitation of the form. Returns the code of the confirmation.

    Raises NotMemberAdmin, UnknownInvitation, Forbidden.
    """
    invitations.delete_invitation(_get_invitation(organization, form), user_id, "admin")
    return "withdrawn"


def resend(organization: Membership, form: Mapping[str, str], user_id: str) -> str:
    """Sends the invitation of the form again. Returns the code of the confirmation.

    Raises NotMemberAdmin, UnknownInvitation, OwnerRequired, ResentTooOften, Forbidden.
    """
    rules.resend_invitation(user_id, organization, _read_invitation_id(organization, form))
    return "resent" if settings.email_sender else "renewed"


def _get_invitation(organization: Membership, form: Mapping[str, str]) -> InvitationItem:
    """Returns the invitation of the form. Raises NotMemberAdmin, UnknownInvitation."""
    invitation = invitations.find_invitation(_read_invitation_id(organization, form))
    if invitation is None:
        raise UnknownInvitation
    return invitation


def _read_invitation_id(organization: Membership, form: Mapping[str, str]) -> InvitationId:
    """Returns the ID of the form's invitation. Raises NotMemberAdmin, UnknownInvitation."""
    require_admin(organization, NotMemberAdmin)
    invitation_id = InvitationId.parse(form.get("invitation_id", ""))
    if invitation_id is None or invitation_id.organization_id != organization.organization_id:
        raise UnknownInvitation
    return invitation_id


def change_member(organization: Membership, form: Mapping[str, str], user_id: str) -> str:
    """Changes or removes the member of the form. Returns the code of the confirmation.

    Raises NotMemberAdmin, NoMember, NotAcceptable, OwnerRequired, OwnMembership, LastOwner, OwnsTooMany, Forbidden.
    """
    require_admin(organization, NotMemberAdmin)
    member_id = MemberId.parse(form.get("member_id", ""))
    if member_id is None or member_id.organization_id != organization.organization_id:
        raise NoMember
    try:
        member = members.get_member(organization.organization_id, f"{ids.USER}_{member_id.local}")
    except members.UnknownMember:
        raise NoMember from None
    if form.get("action") == "remove":
        rules.delete_member(user_id, organization, member)
        return "removed"
    rules.update_member(user_id, organization, member, _read_role(form))
    return "changed"


def _read_role(form: Mapping[str, str]) -> Role:
    role = form.get("role", "")
    if role not in RANK:
        raise NotAcceptable("Choose a role.")
    return role

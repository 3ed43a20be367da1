"""Routes of `members`: list, change role, and remove members; list, create, and cancel invitations."""

from typing import Annotated

from controlplane.access.access import Access, Requires, Resource
from controlplane.access.idempotency import IdempotencyKey, idempotent
from controlplane.organizations import invitations, members, sending
from controlplane.organizations.items import InvitationItem
from controlplane.organizations.store import MemberItem
from controlplane.platform.core import clock, ids
from controlplane.platform.core.ids import InvitationId, MemberId
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.table import keys
from members.schemas import (
    DeletedInvitation,
    DeletedMember,
    Invitation,
    InvitationCreate,
    Member,
    MemberUpdate,
    MemberUser,
    UpdatedMember,
)

router = ControlRouter(tags=["Members"])


def _member_key(organization_id: str, local: str) -> keys.Key:
    return keys.member(organization_id, f"{ids.USER}_{local}")


MEMBER = Resource("memberId", MemberId, _member_key, MemberItem.from_item)
INVITATION = Resource("invitationId", InvitationId, keys.invitation, InvitationItem.from_item)

ReadsMembers = Annotated[Access[None], Requires("members.read", organization="query")]
WritesMember = Annotated[Access[MemberItem], Requires("members.write", role="admin", resource=MEMBER, user_token=True)]
Invites = Annotated[Access[None], Requires("members.write", role="admin", organization="query", user_token=True)]
ChangesInvitation = Annotated[
    Access[InvitationItem], Requires("members.write", role="admin", resource=INVITATION, user_token=True)
]


def _member(member: MemberItem) -> Member:
    return Member.showing(member, id=member.member_id, user=MemberUser.showing(member, id=member.user_id))


def _invitation(invitation: InvitationItem) -> Invitation:
    expires_at = clock.timestamp(invitation.expires_at)
    return Invitation.showing(invitation, id=invitation.invitation_id, status="pending", expires_at=expires_at)


@router.get("/v1/members", summary="List members")
async def list_members(access: ReadsMembers, limit: Limit = 50, cursor: Cursor = None) -> Page[Member]:
    """Lists the organization's members. Any member can list them."""
    organization_id = access.organization_id
    codec = CursorCodec(cursor, "listMembers", organization_id)
    page = members.list_members(organization_id, limit, codec.after)
    return Page([_member(member) for member in page.items], codec.cursor(page.next_sk))


@router.patch("/v1/members/{memberId}", summary="Change a member's role")
@refuses(members.OwnerRequired, members.LastOwner, members.OwnsTooMany)
async def update_member(access: WritesMember, body: MemberUpdate) -> UpdatedMember:
    """Changes a member's role.

    Only an owner can grant the role `owner` or change the role of an owner. The last owner can't be demoted.
    """
    updated = members.update_member(access.user_id, access.membership, access.resource, body.role)
    return UpdatedMember(updated=updated)


@router.delete("/v1/members/{memberId}", summary="Remove a member")
@refuses(members.OwnerRequired, members.OwnMembership, members.LastOwner)
async def delete_member(access: WritesMember) -> DeletedMember:
    """Removes a member from the organization.

    Only an owner can remove an owner. You can't remove yourself, and the last owner can't be removed.
    """
    members.delete_member(access.user_id, access.membership, access.resource)
    return DeletedMember(deleted=True)


@router.get("/v1/invitations", summary="List pending invitations")
async def list_invitations(access: ReadsMembers, limit: Limit = 50, cursor: Cursor = None) -> Page[Invitation]:
    """Lists the organization's pending invitations, newest first.

    Omits invitations whose sender no longer has the role needed to send them, because they can't be accepted.
    """
    codec = CursorCodec(cursor, "listInvitations", access.organization_id)
    page = invitations.list_invitations(access.organization_id, limit, codec.after)
    return Page([_invitation(invitation) for invitation in page.items], codec.cursor(page.next_sk))


@router.post("/v1/invitations", summary="Invite someone", status_code=201)
@refuses(
    members.OwnerRequired,
    invitations.AlreadyMember,
    invitations.AlreadyInvited,
    invitations.TooManyInvitations,
    invitations.AddressNotInvitable,
)
async def create_invitation(
    access: Invites, body: InvitationCreate, idempotency_key: IdempotencyKey = None
) -> Answer[Invitation]:
    """Invites an email address to the organization. The invitation expires after seven days.

    Only an owner can invite an owner. The person gets an email if this deployment sends emails. To accept, the person
    signs in to the dashboard with that address. An address can have one pending invitation per organization. To send
    another, cancel the pending one.
    """
    return idempotent(
        access,
        "createInvitation",
        idempotency_key,
        body,
        lambda legs: _invitation(
            sending.create_invitation(access.user_id, access.membership, body.email, body.role, legs)
        ),
    )


@router.delete("/v1/invitations/{invitationId}", summary="Cancel an invitation")
async def delete_invitation(access: ChangesInvitation) -> DeletedInvitation:
    """Cancels a pending invitation. It can no longer be accepted."""
    invitations.delete_invitation(access.resource, access.user_id, "admin")
    return DeletedInvitation(deleted=True)


@router.post("/v1/invitations/{invitationId}/resend", summary="Send an invitation again")
@refuses(members.OwnerRequired, sending.ResentTooOften)
async def resend_invitation(access: ChangesInvitation) -> Invitation:
    """Renews a pending invitation for seven days from now, and sends its email again.

    Earlier emails and links stay valid. An invitation can be sent again three times a day, and be renewed up to 28 days
    after its creation. If this deployment sends no emails, the invitation is only renewed: send the person the link to
    the dashboard's invitations. Only an owner can send the invitation of an owner again.
    """
    return _invitation(sending.resend_invitation(access.user_id, access.membership, access.resource.invitation_id))

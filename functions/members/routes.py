"""HTTP of `members`: the roster, roles, removal; invitations."""

from typing import Annotated, Any

from controlplane import clock, ids
from controlplane.access import Access, Requires, Resource
from controlplane.app import ControlRouter
from controlplane.envelope import Answer, Page
from controlplane.idempotency import IdempotencyKey, idempotent
from controlplane.pagination import Cursor, Limit, Walk
from controlplane.store import keys
from members import service
from members.schemas import (
    DeletedInvitation,
    DeletedMember,
    Invitation,
    InvitationCreate,
    Inviter,
    Member,
    MemberUpdate,
    MemberUser,
    UpdatedMember,
)

router = ControlRouter(tags=["Members"])

type Item = dict[str, Any]


def _member_key(organization_id: str, local: str) -> keys.Key:
    return keys.member(organization_id, f"{ids.USER}_{local}")


def _as_stored(item: Item) -> Item:
    return item


MEMBER = Resource("memberId", ids.MEMBER, _member_key, _as_stored)
INVITATION = Resource("invitationId", ids.INVITATION, keys.invitation, _as_stored)

ReadsMembers = Annotated[Access[None], Requires("members.read", organization="query")]
WritesMember = Annotated[Access[Item], Requires("members.write", role="admin", resource=MEMBER, user_token=True)]
Invites = Annotated[Access[None], Requires("members.write", role="admin", organization="query", user_token=True)]
CancelsInvitation = Annotated[
    Access[Item], Requires("members.write", role="admin", resource=INVITATION, user_token=True)
]


def _member(organization_id: str, item: Item) -> Member:
    user = MemberUser(id=item["userId"], name=item["name"], email=item["email"], image=item["image"])
    member_id = ids.member_id(organization_id, item["userId"])
    return Member(id=member_id, role=item["role"], joined_at=item["joinedAt"], user=user)


def _invitation(item: Item) -> Invitation:
    return Invitation(
        id=item["invitationId"],
        email=item["email"],
        role=item["role"],
        status="pending",
        created_at=item["createdAt"],
        expires_at=clock.timestamp(item["expiresAt"]),
        invited_by=Inviter(**item["invitedBy"]),
    )


@router.get("/v1/members", operation_id="listMembers")
async def list_members(access: ReadsMembers, limit: Limit = 50, cursor: Cursor = None) -> Page[Member]:
    """The organization's members. Any member may read them."""
    organization_id = access.organization_id
    walk = Walk(cursor, "listMembers", organization_id)
    page = service.list_members(organization_id, limit, walk.after)
    return Page([_member(organization_id, item) for item in page.items], walk.cursor(page.next_sk))


@router.patch("/v1/members/{memberId}", operation_id="updateMember")
async def update_member(access: WritesMember, body: MemberUpdate) -> UpdatedMember:
    """Changes a member's role. Needs a user token of an admin or owner; only owners grant `owner` or change an owner.

    403 `FORBIDDEN` with `details.reason` `last_owner` when the organization would be left without an owner.
    """
    updated = service.update_member(access.user_id, access.membership, access.resource, body.role)
    return UpdatedMember(updated=updated)


@router.delete("/v1/members/{memberId}", operation_id="deleteMember")
async def delete_member(access: WritesMember) -> DeletedMember:
    """Removes a member. Needs a user token of an admin or owner; only owners remove owners.

    403 `FORBIDDEN` with `details.reason` `self` for the caller's own membership, `last_owner` for the last owner.
    """
    service.delete_member(access.user_id, access.membership, access.resource)
    return DeletedMember(deleted=True)


@router.get("/v1/invitations", operation_id="listInvitations")
async def list_invitations(access: ReadsMembers, limit: Limit = 50, cursor: Cursor = None) -> Page[Invitation]:
    """The organization's pending invitations, newest first."""
    walk = Walk(cursor, "listInvitations", access.organization_id)
    page = service.list_invitations(access.organization_id, limit, walk.after)
    return Page([_invitation(item) for item in page.items], walk.cursor(page.next_sk))


@router.post("/v1/invitations", operation_id="createInvitation", status_code=201)
async def create_invitation(
    access: Invites, body: InvitationCreate, idempotency_key: IdempotencyKey = None
) -> Answer[Invitation]:
    """Invites an email address for seven days. Needs a user token of an admin or owner; only owners invite owners.

    409 `CONFLICT` with `details.reason` `already_member` or `already_invited`: cancel a pending one to invite anew.
    """
    return idempotent(
        access,
        "createInvitation",
        idempotency_key,
        body,
        lambda legs: _invitation(
            service.create_invitation(access.user_id, access.membership, body.email, body.role, legs)
        ),
    )


@router.delete("/v1/invitations/{invitationId}", operation_id="deleteInvitation")
async def delete_invitation(access: CancelsInvitation) -> DeletedInvitation:
    """Cancels a pending invitation. Needs a user token of an admin or owner."""
    service.delete_invitation(access.user_id, access.organization_id, access.resource)
    return DeletedInvitation(deleted=True)

"""Sending an invitation. Sent again, it is renewed, and its email goes out once more. The first link stays valid."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from controlplane.organizations import invitations
from controlplane.organizations import store as organizations
from controlplane.organizations.invitations import (
    LIFE_SECONDS,
    LONGEST_LIFE_SECONDS,
    RoleLost,
    UnknownInvitation,
    least_inviter,
)
from controlplane.organizations.items import NOT_RESENT, InvitationItem, MailOutcome, Resends
from controlplane.organizations.members import OwnerRequired, least_role
from controlplane.organizations.store import Membership
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, RoleRequired
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import outbox
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import ConditionFailed, Leg, LegFailed, Recorded, Unrecorded, Update, table

# How often an invitation can be sent again on one day.
RESENDS_PER_INVITATION = 3


class ResentTooOften(Conflict):
    """`scope`: whether the limit of the invitation is reached, or that of all invitations of the organization."""

    message = "Too many invitations were sent again today. Try again tomorrow, or send the link yourself."

    def __init__(self, scope: str, limit: int) -> None:
        super().__init__(details={"reason": "resend_limit", "scope": scope, "limit": limit})


def create_invitation(
    caller_id: str, caller: Membership, email: str, role: Role, extra_legs: Mapping[str, Leg]
) -> InvitationItem:
    """Creates an invitation for the address.

    Raises OwnerRequired, RoleRequired, AlreadyMember, AlreadyInvited, TooManyInvitations, AddressNotInvitable.
    """
    least_role(caller, role)
    limits = invitations.Limits(settings.invitations_per_organization, settings.invitations_per_address)
    return invitations.create_invitation(
        caller.organization_id,
        email,
        role,
        inviter_id=caller_id,
        limits=limits,
        extra_legs=extra_legs,
        announce=announce,
    )


def announce(invitation: InvitationItem) -> Mapping[str, Leg]:
    """Returns the leg that leaves the invitation's email to the sweep, or nothing if no emails are sent.

    The sweep sends the message to `emails` within a minute, so the request makes no further calls. The message
    contains no address: the worker reads it when it sends the email.
    """
    if settings.email_sender is None:
        return {}
    message = {
        "version": 1,
        "kind": "send-invitation",
        "invitationId": invitation.invitation_id,
        "number": invitation.resends.total,
    }
    return {"email": outbox.new_entry("emails", message, after_seconds=0).leg}


def resend_invitation(caller_id: str, caller: Membership, invitation_id: InvitationId) -> InvitationItem:
    """Renews the invitation for seven days, and sends its email again if this deployment sends emails.

    The caller needs the role that is required to send it, and so does its inviter still. An invitation is at most 28
    days old. Raises OwnerRequired, RoleRequired, UnknownInvitation, ResentTooOften.
    """
    least_role(caller)
    try:
        return _resend(caller_id, invitation_id)
    except RoleLost:
        # An admin lacks the role only for an owner's invitation, unless it was just lost.
        raise (OwnerRequired(caller.role) if caller.role == "admin" else RoleRequired()) from None


def _resend(caller_id: str, invitation_id: InvitationId) -> InvitationItem:
    organization_id = invitation_id.organization_id
    key, counter_key = keys.invitation(*invitation_id.location), keys.invitations_made(organization_id)
    caller_key = keys.membership(caller_id, organization_id)

    def attempt() -> InvitationItem:
        found, counted, caller = table.batch_get([key, counter_key, caller_key])
        if found is None or not (current := InvitationItem.from_item(found)).is_pending:
            raise UnknownInvitation
        if caller is None or RANK[caller["role"]] < RANK[least_inviter(current.role)]:
            raise RoleLost
        seen = Resends.from_item(counted["resends"]) if counted and "resends" in counted else NOT_RESENT
        renewed = _renew(current)
        counting = _count(counter_key, seen, _next(seen, "organization", settings.invitation_resends_per_day))
        try:
            legs = {**_legs(caller_id, current, renewed), "organization": counting, **announce(renewed)}
            table.transact(legs, _recorded(current, renewed))
        except LegFailed as failure:
            raise (UnknownInvitation() if failure.leg == "inviter" else WriteConflict()) from None
        return renewed

    return retry_on_conflict(attempt, "the invitation")


def record_mail(invitation: InvitationItem, outcome: MailOutcome) -> None:
    """Records the outcome of the invitation's last email, unless it was sent again, or has ended.

    `sent` never replaces another outcome, because SES's reports may arrive in any order.
    """
    total = invitation.resends.total
    change = "SET #mail = :outcome"
    values: dict[str, Any] = {"outcome": outcome}
    when = "attribute_exists(pk) AND attribute_not_exists(#resends)"
    if total:
        when, values = "#resends.#total = :total", {**values, "total": total}
    if outcome == "sent":
        when += " AND attribute_not_exists(#mail)"
    with suppress(ConditionFailed):
        table.update(Update(invitation.key, change, when, values), Unrecorded.MESSAGE)


def _renew(current: InvitationItem) -> InvitationItem:
    """Returns the invitation after sending it again. Raises ResentTooOften."""
    latest = int(ids.created_at(current.invitation_id.local)) + LONGEST_LIFE_SECONDS
    expires_at = max(current.expires_at, min(int(clock.now()) + LIFE_SECONDS, latest))
    resends = _next(current.resends, "invitation", RESENDS_PER_INVITATION)
    return replace(current, resends=resends, mail=None, expires_at=expires_at)


def _next(seen: Resends, scope: str, limit: int) -> Resends:
    counted = seen.next_on(clock.timestamp()[:10])
    if counted.on_day > limit:
        raise ResentTooOften(scope, limit)
    return counted


def _legs(caller_id: str, current: InvitationItem, renewed: InvitationItem) -> dict[str, Leg]:
    organization_id, inviter_id = current.invitation_id.organization_id, current.invited_by.id
    least = least_inviter(current.role)
    legs: dict[str, Leg] = {"caller": organizations.role_check(caller_id, organization_id, least)}
    if inviter_id != caller_id:
        legs["inviter"] = organizations.role_check(inviter_id, organization_id, least)
    until: dict[str, Any] = {"until": renewed.expires_at}
    counted = _count(current.key, current.resends, renewed.resends)
    return {
        **legs,
        "invitation": replace(
            counted,
            change=f"{counted.change}, #expiresAt = :until REMOVE #mail",
            when=f"attribute_exists(pk) AND {counted.when}",
            values={**counted.values, **until},
        ),
        "invitee": Update(
            current.lock_key,
            "SET #expiresAt = :until",
            "#invitationId = :id",
            {**until, "id": current.invitation_id},
        ),
    }


def _recorded(current: InvitationItem, renewed: InvitationItem) -> Recorded:
    return Recorded(
        Action.INVITATION_RESEND,
        current.invitation_id.organization_id,
        current.invitation_id,
        before={"expiresAt": clock.timestamp(current.expires_at)},
        after={"expiresAt": clock.timestamp(renewed.expires_at), "resends": renewed.resends.total},
    )


def _count(key: Key, seen: Resends, counted: Resends) -> Update:
    """Returns the write of the numbers, which fails if they have changed."""
    values: dict[str, Any] = {"resends": counted.to_map()}
    if not seen.total:
        return Update(key, "SET #resends = :resends", "attribute_not_exists(#resends)", values)
    return Update(key, "SET #resends = :resends", "#resends.#total = :seen", {**values, "seen": seen.total})

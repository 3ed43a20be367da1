"""How an account is deleted: by its person on the pages, or by the operator.

An account is deleted in this order: credentials, memberships, identities, the account, then whatever requests in flight
left behind. Each step can be repeated.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from controlplane.core.emails import normalize_email
from controlplane.core.observability import logger
from controlplane.store import (
    credential_index,
    deletions,
    device,
    feedback,
    identities,
    invitees,
    keys,
    mail_addresses,
    mail_choices,
    mails,
    members,
    organizations,
    revocations,
)
from controlplane.store.credential_index import CredentialItem
from controlplane.store.members import LastOwner
from controlplane.store.organization_items import OrganizationItem
from controlplane.store.organizations import Account, Membership
from controlplane.store.table import ConditionFailed, Delete, LegFailed, StoreError, Unrecorded, table
from controlplane.store.users import UserItem

_PAGE = 25
_OWN_REASON = "the account was deleted"


class LastOwnerOf(StoreError):
    """The user is the last owner of these organizations, listed by slug."""

    def __init__(self, slugs: list[str]) -> None:
        super().__init__(", ".join(slugs))
        self.slugs = slugs


@dataclass(frozen=True, slots=True)
class RevokedCounts:
    """Counts of what was revoked: sessions and tokens, devices, and identities that the user signs in with."""

    tokens: int = 0
    devices: int = 0
    sign_ins: int = 0

    def add(self, other: "RevokedCounts") -> "RevokedCounts":
        return RevokedCounts(self.tokens + other.tokens, self.devices + other.devices, self.sign_ins + other.sign_ins)

    def document(self) -> dict[str, int]:
        return {"tokens": self.tokens, "devices": self.devices, "signIns": self.sign_ins}


def delete_own_account(account: Account, user_id: str, current: str | None) -> None:
    """Deletes the person's account on their own request. Raises LastOwnerOf before any change; Throttled.

    Removes what keys find: access, memberships, invitations to the person, identities, feedback, and the profile. The
    words that the person left in records of organizations take a search of the whole table: `assent-ops user delete`
    with the ID erases those, too.

    current: the local ID of the current session's entry. It is revoked last, so that an interrupted deletion can be
    repeated.
    """
    last = list_last_owned(account.memberships)
    if last:
        raise LastOwnerOf(last)
    profile = account.profile
    revoke_indexed(user_id, _OWN_REASON, forget=True, spared=current)
    leave_all(user_id)
    delete_identities(user_id)
    after = feedback.delete_reports_of(user_id)
    while after is not None:
        after = feedback.delete_reports_of(user_id, after)
    invitees.forget_blocks(user_id)
    if profile is not None:
        decline_all(profile)
        invitees.forget_address(profile.email)
        remove_profile(profile)
    forget_emails(user_id, profile)
    # From here on, no new request creates a credential or membership, but one in flight may just have written one.
    leave_all(user_id)
    revoke_indexed(user_id, _OWN_REASON, forget=True)
    logger.info("account deleted", extra={"userId": user_id})


def forget_emails(user_id: str, profile: UserItem | None) -> None:
    """Removes what was sent to the person and what they chose to receive, after the account was deleted."""
    mail_choices.forget(user_id)
    mails.forget(user_id)
    if profile is not None:
        mail_addresses.forget(profile.email)


def revoke_indexed(user_id: str, reason: str, *, forget: bool, spared: str | None = None) -> RevokedCounts:
    """Revokes the user's indexed credentials, except the one with the local ID `spared`.

    forget: also deletes the remaining items of revoked devices.
    """
    revoked, after = RevokedCounts(), None
    while True:
        page = credential_index.list_credentials(user_id, _PAGE, after)
        for credential in page.credentials:
            if credential.local == spared:
                continue
            revocations.revoke_credential(credential, reason)
            if forget:
                _delete_device_items(credential)
            revoked = revoked.add(RevokedCounts(devices=1) if credential.kind == "device" else RevokedCounts(tokens=1))
        if page.next_sk is None:
            return revoked
        after = page.next_sk


def _delete_device_items(credential: CredentialItem) -> None:
    """Deletes the items of a revoked device, which would otherwise remain until they expire."""
    families, requests = {credential.family_id}, []
    if credential.request_digest is not None:
        requests = [keys.device_request(credential.request_digest)]
        # The device may have redeemed its code since the index entry was read.
        request = device.find_by_digest(credential.request_digest)
        families.add(request.family_id if request else None)
    table.delete_all([*(keys.token_family(family) for family in families if family), *requests], Unrecorded.ERASURE)


def delete_identities(user_id: str) -> RevokedCounts:
    """Deletes the user's recorded identities, so that none of them leads to the account."""
    revoked = RevokedCounts()
    for identity in identities.list_identities(user_id):
        with suppress(ConditionFailed):  # moved to another account, or removed by an interrupted run
            table.delete(Delete(identity.as_subject.key, "#userId = :user", {"user": user_id}), Unrecorded.ACCOUNT)
            revoked = revoked.add(RevokedCounts(sign_ins=1))
    identities.forget(user_id)
    return revoked


def list_last_owned(memberships: Iterable[Membership]) -> list[str]:
    """Returns the slugs of the organizations without another owner, sorted."""
    owned = [it for it in memberships if it.role == "owner"]
    items = table.batch_get([keys.organization(membership.organization_id) for membership in owned]) if owned else []
    found = [OrganizationItem.from_item(item) for item in items if item is not None]
    return sorted(organization.slug for organization in found if organization.owners < 2)


def leave_all(user_id: str, *, with_organizations: bool = False) -> int:
    """Ends the user's memberships and returns their number. Raises LastOwnerOf after ending all that it can.

    with_organizations: also deletes the organizations that would be left without an owner.
    """
    left, last = 0, []
    for membership in organizations.get_account(user_id).memberships:
        try:
            members.remove_member(membership.organization_id, user_id)
        except members.UnknownMember:
            continue  # a concurrent run was faster
        except LastOwner:
            if not with_organizations:
                last.append(membership.slug)
                continue
            with suppress(organizations.UnknownOrganization):
                deletions.delete_organization(membership.organization_id)
        left += 1
    if last:
        raise LastOwnerOf(sorted(last))
    return left


def decline_all(profile: UserItem) -> int:
    """Declines the invitations to the user's address and returns their number."""
    declined = 0
    for invitation in invitees.list_for_address(profile.email):
        try:
            invitees.decline_invitation(invitation.invitation_id, profile)
        except invitees.InvitationGone:
            continue  # concurrently canceled or expired
        declined += 1
    return declined


def remove_profile(profile: UserItem) -> None:
    """Deletes the account and its claim to the address, atomically. The next sign-in creates a new account."""
    own = {"user": profile.user_id}
    try:
        table.transact(
            {
                "profile": Delete(keys.user(profile.user_id), "attribute_exists(pk)"),
                "email": Delete(keys.user_email(normalize_email(profile.email)), "#userId = :user", own),
            },
            Unrecorded.ACCOUNT,
        )
    except LegFailed as failure:
        if failure.leg != "profile" or failure.item is not None:
            raise
        # A concurrent run of this command was faster.

"""Revokes a user's access and deletes their account.

Credentials and identities are read from the user's index, so each pass is a query. Until the index has been backfilled
(`ops.credential_backfill`), each pass also scans the table for unindexed ones, after revoking the indexed ones.
An account is deleted in this order: credentials, memberships, the account, then whatever requests in flight left
behind. Running an interrupted command again completes it.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from controlplane.core import ids
from controlplane.core.emails import normalize_email
from controlplane.store import (
    credential_index,
    deletions,
    device,
    device_approvals,
    identities,
    invitees,
    keys,
    organizations,
    revocations,
    token_families,
    user_tokens,
)
from controlplane.store.credential_index import CredentialItem
from controlplane.store.keys import Key
from controlplane.store.members import LastOwner
from controlplane.store.organization_items import OrganizationItem
from controlplane.store.table import ConditionFailed, Delete, LegFailed, StoreError, Throttled, table
from controlplane.store.user_tokens import UserTokenItem
from controlplane.store.users import UserItem
from ops import members, personal_data
from ops.credential_backfill import DEVICE, FAMILY, IDENTITY, TOKEN
from ops.personal_data import Subject
from ops.table_scan import scan

# The search ends with the first pass that finds nothing. Each pass finds less, unless the user keeps signing in.
_MAX_PASSES = 5
_PAGE = 25
_REASON = "ended by the operator"


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


def revoke_credentials(user_id: str) -> RevokedCounts:
    """Revokes every session, token, and device of the user, who can sign in again. Raises Throttled."""
    return _revoke_until_none_left(user_id, forget=False)


def delete_account(user_id: str, profile: UserItem | None, *, with_organizations: bool = False) -> dict[str, Any]:
    """Deletes the user's credentials, identities, invitations, memberships, account, and whatever else names them.

    profile: None to remove only what an interrupted deletion left.
    with_organizations: also deletes the organizations that would be left without an owner.

    Raises LastOwnerOf, before any change unless the user became the last owner concurrently; Throttled.
    """
    last = _last_owner_of(user_id)
    if last and not with_organizations:
        raise LastOwnerOf(last)
    subject = Subject(user_id, profile.email if profile else None)
    revoked = _revoke_found(user_id, forget=True)
    left = _leave_all(user_id, with_organizations=with_organizations)
    declined = _decline_all(profile) if profile else 0
    # Erase before the account is deleted: after that, a repeated command no longer knows the address.
    erased = Counter(personal_data.erase(subject))
    if profile:
        invitees.forget_address(profile.email)
        _remove_profile(profile)
    invitees.forget_blocks(user_id)
    # From here on, no new request creates a credential for the account, but one in flight may just have written one.
    left += _leave_all(user_id, with_organizations=with_organizations)
    revoked = revoked.add(_revoke_until_none_left(user_id, forget=True))
    left += _leave_all(user_id, with_organizations=with_organizations)
    erased.update(personal_data.erase(subject))
    return {**revoked.document(), "memberships": left, "invitations": declined, "erased": dict(erased)}


def is_left_over(user_id: str) -> bool:
    """Returns True if an interrupted deletion left items of the account."""
    if not ids.is_root(ids.USER, user_id):
        return False
    return bool(
        table.query(keys.user_pk(user_id), limit=1, consistent=True).items
        or invitees.list_all_blocked(user_id)
        or credential_index.list_credentials(user_id, 1).credentials
        or (not credential_index.is_complete() and next(_scan(user_id, everything=True), None))
        or personal_data.is_left(Subject(user_id, None))
    )


def _revoke_until_none_left(user_id: str, *, forget: bool) -> RevokedCounts:
    revoked = RevokedCounts()
    for _ in range(_MAX_PASSES):
        found = _revoke_found(user_id, forget=forget)
        if found == RevokedCounts():
            return revoked
        revoked = revoked.add(found)
    raise Throttled("new credentials keep appearing")


def _revoke_found(user_id: str, *, forget: bool) -> RevokedCounts:
    """Revokes each credential as it is found: first the indexed ones, then, if the index may be incomplete, the rest.

    forget: also deletes identities and the remaining items of revoked devices.
    """
    revoked = _revoke_indexed(user_id, forget=forget)
    if forget:
        revoked = revoked.add(_delete_identities(user_id))
    if not credential_index.is_complete():
        for item in _scan(user_id, everything=forget):
            revoked = revoked.add(_revoke_unindexed(item, forget=forget))
    return revoked


def _revoke_indexed(user_id: str, *, forget: bool) -> RevokedCounts:
    revoked, after = RevokedCounts(), None
    while True:
        page = credential_index.list_credentials(user_id, _PAGE, after)
        for credential in page.credentials:
            revocations.revoke_credential(credential, _REASON)
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
    table.delete_all([*(keys.token_family(family) for family in families if family), *requests])


def _delete_identities(user_id: str) -> RevokedCounts:
    revoked = RevokedCounts()
    for identity in identities.list_identities(user_id):
        with suppress(ConditionFailed):  # moved to another account, or removed by an interrupted run
            table.delete(Delete(identity.as_subject.key, "#userId = :user", {"user": user_id}))
            revoked = revoked.add(RevokedCounts(sign_ins=1))
    identities.forget(user_id)
    return revoked


def _scan(user_id: str, *, everything: bool) -> Iterator[dict[str, Any]]:
    """Scans the table for the user's credentials. Consistent: finds everything written before the scan began.

    everything: also yields identities, and items of revoked devices.
    """
    kinds = {"token": TOKEN, "family": FAMILY, "device": DEVICE, **({"identity": IDENTITY} if everything else {})}
    values = {"user": user_id, **kinds}
    condition = f"#userId = :user AND ({' OR '.join(f'begins_with(#pk, :{name})' for name in kinds)})"
    if not everything:
        condition += " AND (attribute_not_exists(#state) OR #state = :live)"
        condition += " AND (attribute_not_exists(#status) OR #status IN (:approved, :redeemed))"
        values |= {"live": "live", "approved": "approved", "redeemed": "redeemed"}
    return scan(condition, values)


def _revoke_unindexed(item: dict[str, Any], *, forget: bool) -> RevokedCounts:
    """Revokes a credential that the scan found. Returns the count of what was still active."""
    key = Key(item["pk"], item["sk"])
    if key.pk.startswith(IDENTITY):
        table.delete(Delete(key))
        return RevokedCounts(sign_ins=1)
    if key.pk.startswith(TOKEN) and "familyId" not in item:
        user_tokens.revoke_token(UserTokenItem.from_item(item))
        return RevokedCounts(tokens=1)
    revoked = RevokedCounts()
    family_id = item.get("familyId") or (key.pk.removeprefix(FAMILY) if key.pk.startswith(FAMILY) else None)
    if key.pk.startswith(DEVICE) and item["status"] == "approved":
        # A device can redeem its code during the scan, after the scan has passed its token family.
        family_id = device_approvals.withdraw(key.pk.removeprefix(DEVICE), item["userId"])
        revoked = RevokedCounts(devices=family_id is None)
    family = token_families.find_family(family_id) if family_id else None
    if family_id and family is not None and family.state == "live":
        token_families.revoke(family_id, _REASON)
        revoked = RevokedCounts(devices=1)
    if key.pk.startswith(TOKEN) or forget:
        table.delete(Delete(key))
    return revoked


def _last_owner_of(user_id: str) -> list[str]:
    owned = [it for it in organizations.get_account(user_id).memberships if it.role == "owner"]
    items = table.batch_get([keys.organization(membership.organization_id) for membership in owned])
    found = [OrganizationItem.from_item(item) for item in items if item is not None]
    return sorted(organization.slug for organization in found if organization.owners < 2)


def _leave_all(user_id: str, *, with_organizations: bool) -> int:
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


def _decline_all(profile: UserItem) -> int:
    """Declines the invitations to the user's address and returns their number."""
    declined = 0
    for invitation in invitees.list_for_address(profile.email):
        try:
            invitees.decline_invitation(invitation.invitation_id, profile)
        except invitees.InvitationGone:
            continue  # concurrently canceled or expired
        declined += 1
    return declined


def _remove_profile(profile: UserItem) -> None:
    """Deletes the account and its claim to the address, atomically. The next sign-in creates a new account."""
    own = {"user": profile.user_id}
    try:
        table.transact(
            {
                "profile": Delete(keys.user(profile.user_id), "attribute_exists(pk)"),
                "email": Delete(keys.user_email(normalize_email(profile.email)), "#userId = :user", own),
            }
        )
    except LegFailed as failure:
        if failure.leg != "profile" or failure.item is not None:
            raise
        # A concurrent run of this command was faster.

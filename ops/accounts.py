"""Revokes a user's access and deletes their account.

Credentials and identities are read from the user's index, so each pass is a query. An account is deleted in this order:
credentials, memberships, the account, then whatever requests in flight left behind. Running an interrupted command
again completes it.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from controlplane.erasure import deletions
from controlplane.erasure.deletions import FormerAccount, LastOwnerOf, list_last_owned
from controlplane.erasure.personal_data import Subject
from controlplane.organizations import invitees, members
from controlplane.organizations import store as organizations
from controlplane.organizations.members import LastOwner
from controlplane.people import credential_index, identities, revocations
from controlplane.people.users import UserItem
from controlplane.platform.core import ids
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, LegFailed, Throttled, Unrecorded, table
from ops import personal_data

__all__ = ["LastOwnerOf", "RevokedCounts", "delete_account", "is_left_over", "revoke_credentials"]

# The search ends with the first pass that finds nothing. Each pass finds less, unless the user keeps signing in.
_MAX_PASSES = 5
_REASON = "ended by the operator"


@dataclass(frozen=True, slots=True)
class RevokedCounts:
    """The numbers of revoked sessions and tokens, devices, and identities that the user signs in with."""

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
    last = list_last_owned(organizations.get_account(user_id).memberships)
    if last and not with_organizations:
        raise LastOwnerOf(last)
    subject = Subject(user_id, profile.email if profile else None)
    revoked = _revoke_found(user_id, forget=True)
    left = _leave_all(user_id, with_organizations=with_organizations)
    declined = invitees.decline_all(profile.email) if profile else 0
    # Erase before the account is deleted: after that, a repeated command no longer knows the address.
    erased = Counter(personal_data.erase(subject))
    if profile:
        remove_profile(profile)
    former = FormerAccount(user_id, normalize_email(profile.email) if profile else None)
    deletions.remove_choices(former, None)
    deletions.release_address(former, None)
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
        or credential_index.list_credentials(user_id, 1).items
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
    """Revokes each credential as it is found.

    forget: also deletes identities and the remaining items of revoked devices.
    """
    entries = credential_index.list_all_credentials(user_id)
    if forget:
        revocations.erase_all(entries)
    else:
        for credential in entries:
            revocations.revoke_credential(credential, _REASON)
    devices = sum(it.kind == "device" for it in entries)
    return RevokedCounts(len(entries) - devices, devices, identities.delete_all(user_id) if forget else 0)


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
        if failure.leg != "profile":
            raise
        # A concurrent run of this command was faster.

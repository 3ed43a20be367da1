"""Revokes a user's access and deletes their account.

Credentials and identities are read from the user's index, so each pass is a query. Until the index has been backfilled
(`ops.credential_backfill`), each pass also scans the table for unindexed ones, after revoking the indexed ones.
An account is deleted in this order: credentials, memberships, the account, then whatever requests in flight left
behind. Running an interrupted command again completes it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from controlplane.core import ids
from controlplane.rules.accounts import (
    RevokedCounts,
    delete_identities,
    forget_emails,
    leave_all,
    list_last_owned,
    remove_profile,
    revoke_indexed,
)
from controlplane.rules.personal_data import Subject
from controlplane.store import (
    credential_index,
    device_approvals,
    invitees,
    keys,
    organizations,
    token_families,
    user_tokens,
)
from controlplane.store.deletions import LastOwnerOf
from controlplane.store.keys import Key
from controlplane.store.table import Delete, Throttled, Unrecorded, table
from controlplane.store.user_tokens import UserTokenItem
from controlplane.store.users import UserItem
from ops import personal_data
from ops.credential_backfill import DEVICE, FAMILY, IDENTITY, TOKEN
from ops.table_scan import scan

__all__ = ["LastOwnerOf", "RevokedCounts", "delete_account", "is_left_over", "revoke_credentials"]

# The search ends with the first pass that finds nothing. Each pass finds less, unless the user keeps signing in.
_MAX_PASSES = 5
_REASON = "ended by the operator"


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
    left = leave_all(user_id, with_organizations=with_organizations)
    declined = invitees.decline_all(profile.email) if profile else 0
    # Erase before the account is deleted: after that, a repeated command no longer knows the address.
    erased = Counter(personal_data.erase(subject))
    if profile:
        invitees.forget_address(profile.email)
        remove_profile(profile)
    invitees.forget_blocks(user_id)
    forget_emails(user_id, profile)
    # From here on, no new request creates a credential for the account, but one in flight may just have written one.
    left += leave_all(user_id, with_organizations=with_organizations)
    revoked = revoked.add(_revoke_until_none_left(user_id, forget=True))
    left += leave_all(user_id, with_organizations=with_organizations)
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
    revoked = revoke_indexed(user_id, _REASON, forget=forget)
    if forget:
        revoked = revoked.add(delete_identities(user_id))
    if not credential_index.is_complete():
        for item in _scan(user_id, everything=forget):
            revoked = revoked.add(_revoke_unindexed(item, forget=forget))
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
        table.delete(Delete(key), Unrecorded.CREDENTIAL)
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
        table.delete(Delete(key), Unrecorded.CREDENTIAL)
    return revoked

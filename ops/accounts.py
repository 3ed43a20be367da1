"""Revokes a user's access and deletes their account.

Credentials and identities are read from the user's index, so each pass is a query. An account is deleted in this order:
credentials, memberships, the account, then whatever requests in flight left behind. Running an interrupted command
again completes it.
"""

from collections import Counter
from typing import Any

from controlplane.erasure import accounts
from controlplane.erasure.accounts import (
    FormerAccount,
    RevokedCounts,
    delete_identities,
    leave_all,
    list_last_owned,
    remove_profile,
    revoke_indexed,
)
from controlplane.erasure.deletions import LastOwnerOf
from controlplane.erasure.personal_data import Subject
from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.people import credential_index
from controlplane.people.users import UserItem
from controlplane.platform.core import ids
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.table import keys
from controlplane.platform.table.table import Throttled, table
from ops import personal_data

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
        remove_profile(profile)
    former = FormerAccount(user_id, normalize_email(profile.email) if profile else None)
    accounts.remove_choices(former, None)
    accounts.release_address(former, None)
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
    revoked = revoke_indexed(user_id, _REASON, forget=forget)
    return revoked.add(delete_identities(user_id)) if forget else revoked

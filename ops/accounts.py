"""Revokes a user's access and deletes their account, as the pages do, with all that names them.

Credentials are read from the user's index, so each pass is a query. Running an interrupted command again completes it.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from controlplane.erasure import deletions
from controlplane.erasure.deletions import FormerAccount, LastOwnerOf, list_last_owned
from controlplane.erasure.personal_data import Subject
from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.people import credential_index, identities, revocations
from controlplane.people.credential_index import CredentialItem
from controlplane.people.users import UserItem
from controlplane.platform.core import ids
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.queues.deletion_items import DeletionItem
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Throttled, Unrecorded, table
from ops import personal_data

# The search ends with the first pass that finds nothing. Each pass finds less, unless the user keeps signing in.
_MAX_PASSES = 5
_REASON = "ended by the operator"


def revoke_credentials(user_id: str) -> dict[str, int]:
    """Revokes every session, token, and device of the user, who can sign in again. Returns their numbers.

    Raises Throttled.
    """
    revoked = _count(())
    for _ in range(_MAX_PASSES):
        found = credential_index.list_all_credentials(user_id)
        if not found:
            return dict(revoked)
        for credential in found:
            revocations.revoke_credential(credential, _REASON)
        revoked.update(_count(found))
    raise Throttled("new credentials keep appearing")


def delete_account(user_id: str, profile: UserItem | None, *, with_organizations: bool = False) -> dict[str, Any]:
    """Deletes the user's credentials, identities, invitations, memberships, account, and whatever else names them.

    profile: None to remove only what an interrupted deletion left.
    with_organizations: also deletes the organizations that would be left without an owner.

    Raises LastOwnerOf, before any change unless the user became the last owner concurrently; Throttled.
    """
    memberships = organizations.get_account(user_id).memberships
    last = list_last_owned(memberships)
    if last and not with_organizations:
        raise LastOwnerOf(last)
    email = profile.email if profile else _noted_address(user_id)
    subject = Subject(user_id, email)
    credentials = credential_index.list_all_credentials(user_id)
    revocations.erase_all(credentials)
    revoked = {**_count(credentials), "signIns": identities.delete_all(user_id)}
    for membership in memberships:
        if membership.slug in last:
            with suppress(organizations.UnknownOrganization):
                deletions.delete_organization(membership.organization_id)
    declined = invitees.decline_all(email) if email else 0
    # The search takes long: after it, only what requests in flight write is left for the one after the deletion.
    erased = Counter(personal_data.erase(subject))
    left = len(last) + deletions.delete_own_account(organizations.get_account(user_id), user_id)
    former = FormerAccount(user_id, normalize_email(email) if email else None)
    deletions.remove_choices(former, None)
    deletions.release_address(former, None)
    erased.update(personal_data.erase(subject))
    # Nothing is left for the sweep.
    table.delete(Delete(keys.deletion(user_id)), Unrecorded.ERASURE)
    return {**revoked, "memberships": left, "invitations": declined, "erased": dict(erased)}


def is_left_over(user_id: str) -> bool:
    """Returns True if an interrupted deletion left items of the account."""
    if not ids.is_root(ids.USER, user_id):
        return False
    return bool(
        table.query(keys.user_pk(user_id), limit=1, consistent=True).items
        or table.query(keys.blocks_pk(user_id), limit=1, consistent=True).items
        or credential_index.list_credentials(user_id, 1).items
        or personal_data.is_left(Subject(user_id, None))
    )


def _count(credentials: Sequence[CredentialItem]) -> Counter[str]:
    devices = sum(it.kind == "device" for it in credentials)
    return Counter(tokens=len(credentials) - devices, devices=devices, signIns=0)


def _noted_address(user_id: str) -> str | None:
    """Returns the address of an account whose deletion was interrupted, until the sweep has removed what has it."""
    deletion = table.find(keys.deletion(user_id), DeletionItem.from_item)
    return deletion.address if deletion else None

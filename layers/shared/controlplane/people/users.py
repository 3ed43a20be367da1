"""User accounts, found by id or by verified email address.

An account's address is in its profile and in the item that maps the address to the account. Both change in one
transaction.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from controlplane.platform.core import clock, ids
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.stored import SPARSE, StoredItem
from controlplane.platform.table.table import Check, Delete, Leg, Put, StoreError, Unrecorded, Update, table


class EmailTaken(StoreError):
    """Another account has the address."""


class UnknownUser(StoreError):
    """The account doesn't exist or was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserItem(StoredItem):
    """An account's profile.

    ownerships: how many times the user became an owner. None before the first time.
    rosters_pending: rosters may still show the previous name, image, or address.
    """

    user_id: str
    email: str
    name: str
    image: str | None
    created_at: str
    saved_organization_id: str | None = None
    ownerships: Annotated[int | None, SPARSE] = None
    rosters_pending: Annotated[bool, SPARSE] = False

    @property
    def key(self) -> Key:
        return keys.user(self.user_id)


def create_user(
    email: str, name: str, image: str | None = None, extra_legs: Callable[[str], Mapping[str, Leg]] | None = None
) -> UserItem:
    """Creates an account, with the legs that `extra_legs` returns for its id. `email` must be verified.

    Returns the profile. Raises EmailTaken; LegFailed for one of those legs.
    """
    profile = UserItem(
        user_id=ids.new_root(ids.USER),
        email=normalize_email(email),
        name=name,
        image=image,
        created_at=clock.timestamp(),
    )
    absent = "attribute_not_exists(pk)"
    legs: dict[str, Leg] = {
        "email": Put(_pointer(profile.email, profile.user_id), absent),
        "profile": Put(profile.to_item(), absent),
        **(extra_legs(profile.user_id) if extra_legs else {}),
    }
    table.transact(legs, Unrecorded.ACCOUNT, {"email": EmailTaken})
    return profile


def change_address(profile: UserItem, email: str) -> UserItem:
    """Changes the account's address to `email`, which must be verified. Returns the changed profile.

    Sets `rosters_pending`: rosters must be updated. Raises EmailTaken; WriteConflict if the account is gone or no
    longer has the profile's address.
    """
    user_id, address = profile.user_id, normalize_email(email)
    legs: dict[str, Leg] = {
        "profile": Update(
            keys.user(user_id),
            "SET #email = :email, #rostersPending = :pending",
            "#email = :before",
            {"email": address, "pending": True, "before": profile.email},
        ),
        "email": Put(_pointer(address, user_id), "attribute_not_exists(pk)"),
        # The profile's condition implies this one, unless the table is inconsistent: never free another's address.
        "previous": Delete(keys.user_email(normalize_email(profile.email)), "#userId = :user", {"user": user_id}),
    }
    table.transact(legs, Unrecorded.ACCOUNT, {"email": EmailTaken}, WriteConflict)
    return replace(profile, email=address, rosters_pending=True)


def find_user(user_id: str) -> UserItem | None:
    return table.find(keys.user(user_id), UserItem.from_item)


def find_user_by_email(email: str) -> UserItem | None:
    """Returns the profile, or None, in two consistent reads."""
    pointer = table.get(keys.user_email(normalize_email(email)))
    return find_user(pointer["userId"]) if pointer else None


def exists_check(user_id: str) -> Check:
    """Returns a leg that checks that the account exists, so that no credential is created after its deletion."""
    return Check(keys.user(user_id), "attribute_exists(pk)")


def _pointer(address: str, user_id: str) -> dict[str, Any]:
    return {**keys.user_email(address)._asdict(), "userId": user_id}

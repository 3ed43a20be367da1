"""Identities (issuer and subject) and the accounts that they sign in to.

An identity's item names its account. Under the account, one item per issuer lists the identities, so one conditional
write can check whether the account has an identity from that issuer.
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.people import users
from controlplane.people.users import UserItem
from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.stored import StoredItem
from controlplane.platform.table.table import (
    ConditionFailed,
    Delete,
    Leg,
    Put,
    StoreError,
    Unrecorded,
    Update,
    table,
)


class IdentityTaken(StoreError):
    """The identity already belongs to an account."""


class AccountHasIdentity(StoreError):
    """The account has an identity from this issuer."""


class Subject(NamedTuple):
    """An issuer's identifier for a person."""

    issuer: str
    subject: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.issuer}\0{self.subject}".encode()).hexdigest()

    @property
    def key(self) -> keys.Key:
        return keys.identity(self.digest)

    def issuer_key(self, user_id: str) -> keys.Key:
        """Returns the key of the account's list for this issuer."""
        return keys.account_issuer(user_id, hashlib.sha256(self.issuer.encode()).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityItem(StoredItem):
    """An identity and the account that it signs in to."""

    user_id: str
    issuer: str
    subject: str
    created_at: str

    @property
    def key(self) -> keys.Key:
        return self.as_subject.key

    @property
    def as_subject(self) -> Subject:
        return Subject(self.issuer, self.subject)


def find_identity(subject: Subject) -> IdentityItem | None:
    return table.find(subject.key, IdentityItem.from_item)


def get_account(subject: Subject, user_id: str) -> tuple[UserItem | None, list[str]]:
    """Returns the account's profile, or None, and the identities listed for the subject's issuer. Consistent."""
    profile, listed = table.batch_get([keys.user(user_id), subject.issuer_key(user_id)])
    return UserItem.from_item(profile) if profile else None, listed["identities"] if listed else []


def first_legs(subject: Subject, user_id: str) -> dict[str, Leg]:
    """Returns the legs that give an account its first identity from an issuer."""
    return {"identity": _put(subject, user_id), "issuer": _list(subject, user_id, [], [subject.digest])}


def list_identities(user_id: str) -> list[IdentityItem]:
    """Returns the account's recorded identities, by issuer."""
    listings = table.query(keys.user_pk(user_id), prefix=keys.ISSUER_PREFIX, consistent=True).items
    digests = [digest for listing in sorted(listings, key=lambda it: it["issuer"]) for digest in listing["identities"]]
    items = table.batch_get([keys.identity(digest) for digest in digests])
    return [IdentityItem.from_item(item) for item in items if item is not None]


def delete_all(user_id: str) -> int:
    """Deletes a deleted account's identities with their lists. Returns the number of identities."""
    deleted = 0
    for identity in list_identities(user_id):
        with suppress(ConditionFailed):  # moved to another account, or removed by an interrupted run
            table.delete(Delete(identity.key, "#userId = :user", {"user": user_id}), Unrecorded.ACCOUNT)
            deleted += 1
    table.delete_partition(keys.user_pk(user_id), Unrecorded.ACCOUNT, keys.ISSUER_PREFIX)
    return deleted


class Listing(NamedTuple):
    """The identities that an account has from one issuer."""

    key: keys.Key
    digests: list[str]


def list_listings(user_id: str) -> list[Listing]:
    """Returns the account's lists of identities. Consistent."""
    items = table.query(keys.user_pk(user_id), prefix=keys.ISSUER_PREFIX, consistent=True).items
    return [Listing(keys.Key(item["pk"], item["sk"]), item["identities"]) for item in items]


def erasure(user_id: str, listings: Iterable[Listing]) -> dict[str, Leg]:
    """Returns the legs that delete the lists with the identities that are still the account's."""
    own, legs = "attribute_not_exists(pk) OR #userId = :user", dict[str, Leg]()
    for listing in listings:
        legs[listing.key.sk] = Delete(listing.key, "#identities = :listed", {"listed": listing.digests})
        for digest in listing.digests:
            legs[f"identity {digest}"] = Delete(keys.identity(digest), own, {"user": user_id})
    return legs


def replace(identity: IdentityItem, subject: str) -> None:
    """Replaces the identity with another subject of the same issuer in the same account.

    Raises IdentityTaken if the new subject already belongs to an account; WriteConflict if the identity, the account,
    or its list of identities has changed.
    """
    user_id, old = identity.user_id, identity.as_subject
    new = Subject(old.issuer, subject)
    _, listed = get_account(old, user_id)
    after = [digest for digest in listed if digest != old.digest] + [new.digest]
    _move(
        {
            "identity": _put(new, user_id),
            "previous": Delete(old.key, "#userId = :user", {"user": user_id}),
            "issuer": _list(new, user_id, listed, after),
            "profile": users.exists_check(user_id),
        }
    )


def move(identity: IdentityItem, user_id: str) -> None:
    """Moves the identity to another account, which must not have one from this issuer.

    Raises AccountHasIdentity; WriteConflict if one of the accounts, the identity, or its account's list has changed.
    """
    before, subject = identity.user_id, identity.as_subject
    _, listed = get_account(subject, before)
    values = {"before": before, "after": user_id}
    _move(
        {
            "target": users.exists_check(user_id),
            "targetIssuer": _list(subject, user_id, [], [subject.digest]),
            "previous": Update(subject.key, "SET #userId = :after", "#userId = :before", values),
            "issuer": _list(subject, before, listed, [digest for digest in listed if digest != subject.digest]),
        }
    )


def _move(legs: dict[str, Leg]) -> None:
    errors = {"identity": IdentityTaken, "targetIssuer": AccountHasIdentity}
    table.transact(legs, Unrecorded.ACCOUNT, errors, WriteConflict)


def _put(subject: Subject, user_id: str) -> Put:
    identity = IdentityItem(
        user_id=user_id, issuer=subject.issuer, subject=subject.subject, created_at=clock.timestamp()
    )
    return Put(identity.to_item(), "attribute_not_exists(pk)")


def _list(subject: Subject, user_id: str, before: list[str], after: list[str]) -> Put | Delete:
    """Returns the leg that changes the account's list for the subject's issuer from `before` to `after`."""
    key = subject.issuer_key(user_id)
    when = "#identities = :before" if before else "attribute_not_exists(pk)"
    values = {"before": before} if before else {}
    if not after:
        return Delete(key, when, values)
    return Put({**key._asdict(), "issuer": subject.issuer, "identities": after}, when, values)

"""Signing in: from what an issuer says of a person to the account that is theirs.

An identity (issuer and subject) belongs to one account for good. A new one makes an account, or joins the one that has
its address; the address must be verified for that, because it is all that says whose the account is.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from controlplane import clock
from controlplane.emails import normalize_email
from controlplane.store import credential_index, keys, organizations, users
from controlplane.store.table import Check, ConditionFailed, Leg, LegFailed, Put, StoreError, Throttled, Update, table

_TRIES = 8


class AddressNotVerified(StoreError):
    """The issuer does not vouch for the address, or names none: nobody can tell whose account it is."""


class Identity(NamedTuple):
    """What an issuer says of a person. `name` and `image` are None where it says nothing of them."""

    issuer: str
    subject: str
    email: str | None
    email_verified: bool
    name: str | None
    image: str | None


def sign_in(identity: Identity) -> dict[str, Any]:
    """The profile of the person's account, which their first sign-in makes. Raises AddressNotVerified.

    The account keeps the address it was made with. Name and image follow the issuer, in rosters too.
    """
    for _ in range(_TRIES):
        known = table.get(_key(identity))
        profile = users.find_user(known["userId"]) if known else _join(identity)
        if profile is not None:
            if known:
                list_identity(known)
            return _refresh(profile, identity)
    raise Throttled("the account of this address keeps changing")


def _key(identity: Identity) -> keys.Key:
    return keys.identity(hashlib.sha256(f"{identity.issuer}\0{identity.subject}".encode()).hexdigest())


def _join(identity: Identity) -> dict[str, Any] | None:
    """The account of a new identity; None where somebody else was quicker, and all has to be looked at again."""
    if identity.email is None or not identity.email_verified:
        raise AddressNotVerified
    # A new identity is put with the account it belongs to, or not at all.
    profile = users.find_user_by_email(identity.email)
    try:
        if profile is None:
            return users.create_user(
                identity.email,
                identity.name or identity.email.partition("@")[0],
                identity.image,
                beside=lambda user_id: _legs(identity, user_id),
            )
        user_id = profile["userId"]
        pointer = keys.user_email(normalize_email(identity.email))
        still = Check(pointer, "#userId = :user", {"user": user_id})
        table.transact({"email": still, **_legs(identity, user_id)})
    except (LegFailed, users.EmailTaken):
        return None
    return profile


def list_identity(known: Mapping[str, Any]) -> None:
    """Lists an identity's item under its account, which finds it when it is deleted, unless it is listed there."""
    user_id = known["userId"]
    if known.get("listedFor") == user_id:
        return
    key = keys.Key(known["pk"], known["sk"])
    mark = Update(key, "SET #listedFor = :user", "#userId = :user", {"user": user_id})
    with suppress(LegFailed):  # moved or removed a moment ago
        table.transact({"identity": mark, **credential_index.identity_legs(user_id, key.pk.partition("#")[2])})


def _legs(identity: Identity, user_id: str) -> dict[str, Leg]:
    """The legs that give the account a new identity."""
    key = _key(identity)
    item = {
        **key._asdict(),
        "userId": user_id,
        "issuer": identity.issuer,
        "subject": identity.subject,
        "createdAt": clock.timestamp(),
        "listedFor": user_id,
    }
    listed = credential_index.identity_legs(user_id, key.pk.partition("#")[2])
    return {"identity": Put(item, "attribute_not_exists(pk)"), **listed}


def _refresh(profile: dict[str, Any], identity: Identity) -> dict[str, Any]:
    """The profile with the name and image the issuer has now.

    Rosters first, the profile last: a refresh that was cut short is seen, and done again, by the next sign-in.
    """
    shown = {"name": identity.name or profile["name"], "image": identity.image or profile["image"]}
    if all(profile[field] == value for field, value in shown.items()):
        return profile
    user_id = profile["userId"]
    change = "SET #name = :name, #image = :image"
    for membership in organizations.get_account(user_id).memberships:
        try:
            roster = keys.member(membership.organization_id, user_id)
            table.update(Update(roster, change, "attribute_exists(pk)", shown))
        except ConditionFailed:
            continue  # left a moment ago
    return table.update(Update(keys.user(user_id), change, "attribute_exists(pk)", shown))

"""User accounts, found by id or by verified email address, and the tokens that act for users.

An account's address is in its profile and in the item that maps the address to the account. Both change in one
transaction.
"""

from collections.abc import Callable, Mapping
from typing import Any

from controlplane.core import clock, ids, tokens
from controlplane.core.emails import normalize_email
from controlplane.core.settings import settings
from controlplane.store import credential_index, keys
from controlplane.store.table import Check, Delete, Leg, LegFailed, Put, StoreError, Update, table

_HOUR_SECONDS = 3600


class EmailTaken(StoreError):
    """Another account has the address."""


class UnknownUser(StoreError):
    """The account doesn't exist or was deleted."""


class AccountChanged(StoreError):
    """The account is gone, or its address is no longer the one that was read."""


def create_user(
    email: str, name: str, image: str | None = None, extra_legs: Callable[[str], Mapping[str, Leg]] | None = None
) -> dict[str, Any]:
    """Creates an account, with the legs that `extra_legs` returns for its id. `email` must be verified.

    Returns the profile. Raises EmailTaken; LegFailed for one of those legs.
    """
    user_id = ids.new_root(ids.USER)
    address = normalize_email(email)
    profile = {
        **keys.user(user_id)._asdict(),
        "userId": user_id,
        "email": address,
        "name": name,
        "image": image,
        "savedOrganizationId": None,
        "identitiesRecorded": True,
        "createdAt": clock.timestamp(),
    }
    absent = "attribute_not_exists(pk)"
    try:
        table.transact(
            {
                "email": Put({**keys.user_email(address)._asdict(), "userId": user_id}, absent),
                "profile": Put(profile, absent),
                **(extra_legs(user_id) if extra_legs else {}),
            }
        )
    except LegFailed as refusal:
        if refusal.leg != "email":
            raise
        raise EmailTaken from None
    return profile


def change_address(profile: Mapping[str, Any], email: str) -> dict[str, Any]:
    """Changes the account's address to `email`, which must be verified. Returns the changed profile.

    Sets `rostersPending` in the profile: rosters must be updated. Raises EmailTaken, AccountChanged.
    """
    user_id, address = profile["userId"], normalize_email(email)
    own = {"user": user_id}
    legs: dict[str, Leg] = {
        "profile": Update(
            keys.user(user_id),
            "SET #email = :email, #rostersPending = :pending",
            "#email = :before",
            {"email": address, "pending": True, "before": profile["email"]},
        ),
        "email": Put({**keys.user_email(address)._asdict(), "userId": user_id}, "attribute_not_exists(pk)"),
        "previous": Delete(keys.user_email(normalize_email(profile["email"])), "#userId = :user", own),
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        raise (EmailTaken if refusal.leg == "email" else AccountChanged) from None
    return {**profile, "email": address, "rostersPending": True}


def find_user(user_id: str) -> dict[str, Any] | None:
    return table.get(keys.user(user_id))


def find_user_by_email(email: str) -> dict[str, Any] | None:
    """Returns the profile, or None, in two consistent reads."""
    pointer = table.get(keys.user_email(normalize_email(email)))
    return find_user(pointer["userId"]) if pointer else None


def exists_check(user_id: str) -> Check:
    """Returns a leg that checks that the account exists, so that no credential is created after its deletion."""
    return Check(keys.user(user_id), "attribute_exists(pk)")


def token_item(
    secret: str, user_id: str, kind: str, scopes: list[str], lifetime_seconds: int, **more: Any
) -> dict[str, Any]:
    """Returns the token's item, with the secret's hash only. `more` are attributes specific to its kind.

    Its creation counts as a use in this hour.
    """
    return {
        **keys.user_token(tokens.digest(secret))._asdict(),
        "userId": user_id,
        "kind": kind,
        "scopes": sorted(scopes),
        "rateLimit": settings.requests_per_minute_user_token,
        "expiresAt": int(clock.now()) + lifetime_seconds,
        "win": 0,
        "hits": 0,
        "usedHour": int(clock.now()) // _HOUR_SECONDS,
        **more,
    }


def put_token(secret: str, user_id: str, kind: str, scopes: list[str], lifetime_seconds: int, **shown: Any) -> None:
    """Stores a session's or operator's token, with its entry in the user's credential index.

    `shown` are fields of the entry. Raises UnknownUser.
    """
    local = ids.new_local()
    item = token_item(secret, user_id, kind, scopes, lifetime_seconds, listedAs=local)
    now = clock.timestamp()
    listed = credential_index.entry(
        user_id,
        local,
        "session" if kind == "session" else "token",
        scopes=scopes,
        expires_at=item["expiresAt"],
        created_at=now,
        last_used_at=now,
        digest=tokens.digest(secret),
        **shown,
    )
    try:
        table.transact({"person": exists_check(user_id), "token": Put(item), "listed": listed})
    except LegFailed:
        raise UnknownUser from None


def create_token(user_id: str, scopes: list[str], lifetime_seconds: int) -> str:
    """Creates a bearer secret for the user with the scopes; only its hash is stored. Raises UnknownUser."""
    secret = tokens.mint(settings.service_brand + tokens.ACCESS)
    put_token(secret, user_id, "oauth", scopes, lifetime_seconds, client=credential_index.OPERATOR)
    return secret


def revoke_token(item: Mapping[str, Any]) -> None:
    """Revokes a token that doesn't belong to a family, and deletes its index entry."""
    key = keys.Key(item["pk"], item["sk"])
    table.transact({"token": Delete(key), "listed": credential_index.removal(item)})

"""People: their accounts, found by id or by verified email address, and the tokens that act for them."""

from collections.abc import Callable, Mapping
from typing import Any

from controlplane import clock, ids, tokens
from controlplane.settings import settings
from controlplane.store import keys
from controlplane.store.table import Leg, LegFailed, Put, StoreError, table


class EmailTaken(StoreError):
    """Another account has the address."""


def normalize_email(email: str) -> str:
    """The form in which addresses are compared and become part of keys: without case."""
    return email.strip().lower()


def create_user(
    email: str, name: str, image: str | None = None, beside: Callable[[str], Mapping[str, Leg]] | None = None
) -> dict[str, Any]:
    """The profile of a new account, with the legs that `beside` gives for its id. `email` is taken as verified.

    Raises EmailTaken; LegFailed for one of those legs.
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
        "createdAt": clock.timestamp(),
    }
    absent = "attribute_not_exists(pk)"
    try:
        table.transact(
            {
                "email": Put({**keys.user_email(address)._asdict(), "userId": user_id}, absent),
                "profile": Put(profile, absent),
                **(beside(user_id) if beside else {}),
            }
        )
    except LegFailed as refusal:
        if refusal.leg != "email":
            raise
        raise EmailTaken from None
    return profile


def find_user(user_id: str) -> dict[str, Any] | None:
    return table.get(keys.user(user_id))


def find_user_by_email(email: str) -> dict[str, Any] | None:
    """The profile, or None. Two reads, both consistent."""
    pointer = table.get(keys.user_email(normalize_email(email)))
    return find_user(pointer["userId"]) if pointer else None


def token_item(
    secret: str, user_id: str, kind: str, scopes: list[str], lifetime_seconds: int, **more: Any
) -> dict[str, Any]:
    """The item by which the secret authenticates a person: without the secret, and with what a kind adds to it."""
    return {
        **keys.user_token(tokens.digest(secret))._asdict(),
        "userId": user_id,
        "kind": kind,
        "scopes": sorted(scopes),
        "rateLimit": settings.requests_per_minute_user_token,
        "expiresAt": int(clock.now()) + lifetime_seconds,
        "win": 0,
        "hits": 0,
        "usedHour": 0,
        **more,
    }


def create_token(user_id: str, scopes: list[str], lifetime_seconds: int, kind: str = "oauth") -> str:
    """A bearer secret that acts for the person within the scopes; only its hash is stored."""
    secret = tokens.mint(settings.service_brand + tokens.ACCESS)
    table.put(Put(token_item(secret, user_id, kind, scopes, lifetime_seconds)))
    return secret

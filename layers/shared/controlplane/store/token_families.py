"""Token families: the chain of refresh tokens, and their access tokens, issued for one approval of a device.

A refresh token works once. Its successors are derived from it, so a client that lost the response can get the same pair
again for one minute, without the pair being stored. Any other token of the chain, when presented, revokes the family,
because it may have been stolen. The family lists its unexpired access tokens and deletes them when it is revoked, so
that authenticating an access token doesn't need to read the family.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane.core import clock, ids, tokens
from controlplane.core.settings import settings
from controlplane.store import credential_index, keys, users
from controlplane.store.table import Delete, Leg, LegFailed, Put, StoreError, Throttled, Update, table

ACCESS_SECONDS = 3600
REFRESH_SECONDS = 30 * 24 * 3600
# The maximum lifetime of a family, regardless of refreshes; then the user must approve again (ASVS 10.4.8).
FAMILY_SECONDS = 180 * 24 * 3600
REPEAT_SECONDS = 60
# A client that refreshes more often than every twelve minutes loses its oldest access token a little early.
LIVE_ACCESS_TOKENS = 5
_TRIES = 8
_ABSENT = "attribute_not_exists(pk)"


class UnknownRefreshToken(StoreError):
    """The token was never issued, has expired, or belongs to another client or a revoked family."""


class RefreshTokenReused(StoreError):
    """The token was already used. Its family has been revoked."""


class ScopeNotGranted(StoreError):
    """The requested scopes exceed the approved ones."""


class Pair(NamedTuple):
    """An access token with its lifetime in seconds, and its refresh token."""

    access_token: str
    expires_in: int
    refresh_token: str
    scopes: list[str]


def begin(user_id: str, client_id: str, scopes: list[str], listed_as: str) -> tuple[str, Pair, dict[str, Leg]]:
    """Returns a new family's id, its first pair, and the legs that write it in the caller's transaction.

    `listed_as` is its position in the user's credential index, whose entry the caller writes.
    """
    family_id = ids.new_part()
    access_token = tokens.mint(settings.service_brand + tokens.ACCESS)
    refresh_token = tokens.mint_refresh(family_id)
    now = int(clock.now())
    access = _access_item(access_token, user_id, client_id, scopes, family_id, ACCESS_SECONDS, listed_as)
    family = {
        **keys.token_family(family_id)._asdict(),
        "userId": user_id,
        "clientId": client_id,
        "scopes": sorted(scopes),
        "state": "live",
        "current": tokens.digest(refresh_token),
        "previous": None,
        "rotatedAt": now,
        "access": [_noted(access_token, access)],
        "accessScopes": access["scopes"],
        "createdAt": clock.timestamp(),
        "endsAt": now + FAMILY_SECONDS,
        "expiresAt": now + REFRESH_SECONDS,
        "listedAs": listed_as,
    }
    legs: dict[str, Leg] = {"family": Put(family, _ABSENT), "access": Put(access, _ABSENT)}
    return family_id, Pair(access_token, ACCESS_SECONDS, refresh_token, access["scopes"]), legs


def rotate(refresh_token: str, client_id: str | None = None, scopes: list[str] | None = None) -> Pair:
    """Returns the token's successor pair. For 60 seconds, the token used last returns the same pair again.

    `client_id`, if set, must be the family's; `scopes` narrow the access token. Raises UnknownRefreshToken,
    ScopeNotGranted, and RefreshTokenReused after revoking all tokens of the family. One read, one transaction.
    """
    family_id = tokens.family_of(refresh_token)
    if family_id is None:
        raise UnknownRefreshToken
    presented = tokens.digest(refresh_token)
    for _ in range(_TRIES):
        family = table.get(keys.token_family(family_id))
        if family is None or not _is_live(family) or client_id not in {None, family["clientId"]}:
            raise UnknownRefreshToken
        if presented == family["current"]:
            wanted = _within(family, scopes)
            try:
                return _take_turn(family, refresh_token, wanted)
            except LegFailed:
                continue  # a concurrent refresh or revocation: re-read
        if presented == family["previous"] and clock.now() < family["rotatedAt"] + REPEAT_SECONDS:
            access_token, successor = _current_successors(refresh_token, family)
            left = family["access"][-1]["expiresAt"] - int(clock.now())
            return Pair(access_token, left, successor, family["accessScopes"])
        revoke(family_id, "reused")
        raise RefreshTokenReused
    raise Throttled("the token family keeps changing")


def revoke(family_id: str, reason: str) -> None:
    """Ends the family, its access tokens, and its index entry in one transaction. Does nothing if it isn't live."""
    for _ in range(_TRIES):
        family = table.get(keys.token_family(family_id))
        if family is None or family["state"] != "live":
            return
        end = Update(
            keys.token_family(family_id),
            "SET #state = :revoked, #reason = :reason, #revokedAt = :at, #access = :none",
            # A concurrent refresh adds an access token that this transaction would miss.
            "#state = :live AND #current = :current",
            {
                "revoked": "revoked",
                "reason": reason,
                "at": clock.timestamp(),
                "none": [],
                "live": "live",
                "current": family["current"],
            },
        )
        try:
            listed = credential_index.removal(family)
            table.transact({"family": end, "listed": listed, **_deletions(family["access"])})
        except LegFailed:
            continue
        return
    raise Throttled("the token family keeps changing")


def revoke_refresh_token(refresh_token: str, client_id: str | None = None) -> None:
    """Revokes the family of a refresh token, used or not. Ignores any other token."""
    family_id = tokens.family_of(refresh_token)
    if family_id is not None:
        _revoke_of_client(family_id, client_id)


def revoke_access_token(access_token: str, client_id: str | None = None) -> None:
    """Revokes an access token's family, or only the token if it has no family. Ignores any other token."""
    key = keys.user_token(tokens.digest(access_token))
    item = table.get(key)
    if item is None or item["kind"] != "oauth":
        return
    if "familyId" in item:
        _revoke_of_client(item["familyId"], client_id)
    else:
        users.revoke_token(item)


def _revoke_of_client(family_id: str, client_id: str | None) -> None:
    if client_id is not None:
        family = table.get(keys.token_family(family_id))
        if family is None or family["clientId"] != client_id:
            return
    revoke(family_id, "revoked by the client")


def _is_live(family: Mapping[str, Any]) -> bool:
    return bool(family["state"] == "live" and family["expiresAt"] > clock.now())


def _current_successors(refresh_token: str, family: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the successors of this token that the family already has.

    During a rotation of the signing secret they can be derived from either key, so the family's digest decides. Raises
    UnknownRefreshToken if the key that they were derived from has since left the key ring.
    """
    for access_token, successor in tokens.successors_of(refresh_token):
        if tokens.digest(successor) == family["current"]:
            return access_token, successor
    raise UnknownRefreshToken


def _within(family: Mapping[str, Any], scopes: list[str] | None) -> list[str]:
    if scopes is None:
        return list(family["scopes"])
    if not set(scopes) <= set(family["scopes"]):
        raise ScopeNotGranted
    return scopes


def _take_turn(family: dict[str, Any], refresh_token: str, scopes: list[str]) -> Pair:
    """Writes the current token's successors. Raises LegFailed if the token is no longer the current one."""
    access_token, successor = tokens.successors_of(refresh_token)[0]
    now = int(clock.now())
    family_id = family["pk"].partition("#")[2]
    # No token outlives its family, because it couldn't be revoked then.
    lifetime = min(ACCESS_SECONDS, family["endsAt"] - now)
    local = credential_index.local_of(family)
    access = _access_item(access_token, family["userId"], family["clientId"], scopes, family_id, lifetime, local)
    alive = [entry for entry in family["access"] if entry["expiresAt"] > now]
    room = LIVE_ACCESS_TOKENS - 1
    until = min(now + REFRESH_SECONDS, family["endsAt"])
    turn = Update(
        keys.token_family(family_id),
        "SET #previous = #current, #current = :next, #rotatedAt = :now, #access = :access, #accessScopes = :scopes,"
        " #expiresAt = :until, #listedAs = :local",
        "#state = :live AND #current = :current AND #expiresAt > :now",
        {
            "next": tokens.digest(successor),
            "now": now,
            "access": [*alive[-room:], _noted(access_token, access)],
            "scopes": access["scopes"],
            "until": until,
            "local": local,
            "live": "live",
            "current": family["current"],
        },
    )
    listed = entry(family, until, clock.timestamp())
    table.transact({"family": turn, "access": Put(access, _ABSENT), "listed": listed, **_deletions(alive[:-room])})
    return Pair(access_token, lifetime, successor, access["scopes"])


def entry(family: Mapping[str, Any], expires_at: int, last_used_at: str) -> Update:
    """Returns the leg that writes or renews the family's entry in the user's credential index."""
    return credential_index.entry(
        family["userId"],
        credential_index.local_of(family),
        "device",
        client=family["clientId"],
        scopes=family["scopes"],
        expires_at=expires_at,
        last_used_at=last_used_at,
        created_at=family["createdAt"],
        family_id=family["pk"].partition("#")[2],
    )


def _access_item(  # noqa: PLR0917 (what the token is made of)
    secret: str, user_id: str, client_id: str, scopes: list[str], family_id: str, lifetime_seconds: int, local: str
) -> dict[str, Any]:
    more = {"familyId": family_id, "clientId": client_id, "listedAs": local}
    return users.token_item(secret, user_id, "oauth", scopes, lifetime_seconds, **more)


def _noted(access_token: str, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"digest": tokens.digest(access_token), "expiresAt": item["expiresAt"]}


def _deletions(access: list[dict[str, Any]]) -> dict[str, Leg]:
    return {f"access {number}": Delete(keys.user_token(entry["digest"])) for number, entry in enumerate(access)}

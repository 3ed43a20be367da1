"""Token families: what one approval of a device gives. A chain of refresh tokens, and the access tokens beside them.

A refresh token works once. What follows it is derived from it, so the pair can be given again to a client that lost
the answer, for a minute and without being stored. Presenting any other token of the chain ends the family: somebody
else has a copy. The family knows the access tokens that may still live and takes them along when it ends, so that a
request with one needs no look at the family.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane import clock, ids, tokens
from controlplane.settings import settings
from controlplane.store import credential_index, keys, users
from controlplane.store.table import Delete, Leg, LegFailed, Put, StoreError, Throttled, Update, table

ACCESS_SECONDS = 3600
REFRESH_SECONDS = 30 * 24 * 3600
# However often it is refreshed, a family ends then, and a person is asked again (ASVS 10.4.8).
FAMILY_SECONDS = 180 * 24 * 3600
REPEAT_SECONDS = 60
# A client that refreshes more often than every twelve minutes loses its oldest access token a little early.
LIVE_ACCESS_TOKENS = 5
_TRIES = 8
_ABSENT = "attribute_not_exists(pk)"


class UnknownRefreshToken(StoreError):
    """Never issued, expired, of another client, or of a family that ended."""


class RefreshTokenReused(StoreError):
    """Somebody presented a token that was used before. Its family has ended by it."""


class ScopeNotGranted(StoreError):
    """More was asked for than was approved."""


class Pair(NamedTuple):
    """An access token with the seconds it lives, and the refresh token beside it."""

    access_token: str
    expires_in: int
    refresh_token: str
    scopes: list[str]


def begin(user_id: str, client_id: str, scopes: list[str], listed_as: str) -> tuple[str, Pair, dict[str, Leg]]:
    """A new family: its id, its first pair, and the legs that write it. The caller's transaction decides.

    `listed_as` is its place in the person's credential index, whose entry the caller writes.
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
    """The pair that follows the token: for the token that was used last, the same one again for 60 seconds.

    `client_id` must be the family's where it is given; `scopes` narrow the access token. Raises UnknownRefreshToken,
    ScopeNotGranted, and RefreshTokenReused, after which every token of the family is dead. One read, one transaction.
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
                continue  # the other one of two refreshes came first, or the family ended: look again
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
            # A refresh in between has an access token that this transaction would miss.
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
    """Ends the family of a refresh token, used or not. Anything else is no error."""
    family_id = tokens.family_of(refresh_token)
    if family_id is not None:
        _revoke_of_client(family_id, client_id)


def revoke_access_token(access_token: str, client_id: str | None = None) -> None:
    """Ends the family of an access token, or the token alone where it has none. Anything else is no error."""
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
    """The tokens that the family already holds as those after this one.

    During a rotation of the signing secret they may be derived from either key, so the family's digest decides. Raises
    UnknownRefreshToken if the key that they are derived from has left the ring since.
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
    """Writes what follows the current token. Raises LegFailed where it is not the current one any more."""
    access_token, successor = tokens.successors_of(refresh_token)[0]
    now = int(clock.now())
    family_id = family["pk"].partition("#")[2]
    # Nothing outlives its family, which could not be revoked then.
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
    """The leg that writes or renews the family's entry in the person's credential index."""
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

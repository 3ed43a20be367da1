"""Token families: the chain of refresh tokens, and their access tokens, issued for one approval of a device.

A refresh token works once. Its successors are derived from it, so a client that lost the response can get the same pair
again for one minute, without the pair being stored. Any other token of the chain, when presented, revokes the family,
because it may have been stolen. The family lists its unexpired access tokens and deletes them when it is revoked, so
that authenticating an access token doesn't need to read the family.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self

from controlplane.people import tokens as user_tokens
from controlplane.people.credential_index import CredentialItem
from controlplane.people.tokens import UserTokenItem
from controlplane.platform.core import clock, ids, tokens
from controlplane.platform.core.errors import Unauthorized, known
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.retry import retry_on_conflict
from controlplane.platform.table.stored import KeyPart, StoredItem, StoredMap
from controlplane.platform.table.table import Delete, Leg, Put, StoreError, Unrecorded, Update, table

ACCESS_SECONDS = 3600
REFRESH_SECONDS = 30 * 24 * 3600
# The maximum lifetime of a family, regardless of refreshes; then the user must approve again (ASVS 10.4.8).
FAMILY_SECONDS = 180 * 24 * 3600
REPEAT_SECONDS = 60
# A client that refreshes more often than every twelve minutes loses its oldest access token a little early.
LIVE_ACCESS_TOKENS = 5


class RefreshRefused(Unauthorized):
    """The response for every invalid refresh token, so that a caller can't tell why it is invalid."""

    oauth_error: ClassVar[str] = "invalid_grant"
    message = "This refresh token is unknown, expired, used, or revoked. Request a new device code."


class UnknownRefreshToken(RefreshRefused):
    """The token was never issued, has expired, or belongs to another client or a revoked family."""


class RefreshTokenReused(RefreshRefused):
    """The token was already used. Its family has been revoked."""

    def __init__(self) -> None:
        super().__init__(reason="a used refresh token was presented; its family is revoked")


class ScopeNotGranted(StoreError):
    """The requested scopes exceed the approved ones."""


class Pair(NamedTuple):
    """An access token with its lifetime in seconds, and its refresh token."""

    access_token: str
    expires_in: int
    refresh_token: str
    scopes: list[str]


@dataclass(frozen=True, slots=True)
class AccessToken(StoredMap):
    """An access token of a family that may still be valid."""

    digest: str
    expires_at: int

    @classmethod
    def of(cls, token: UserTokenItem) -> Self:
        return cls(token.digest, token.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFamilyItem(StoredItem):
    """A family. `current` and `previous` are the digests of its last two refresh tokens. All times are Unix times,
    except `created_at`.

    access: its unexpired access tokens, oldest first. The last one has `access_scopes`.
    listed_as: the local id of its index entry.
    """

    family_id: KeyPart
    user_id: str
    client_id: str
    scopes: list[str]
    state: Literal["live", "revoked"]
    current: str
    previous: str | None
    rotated_at: int
    access: list[AccessToken]
    access_scopes: list[str]
    created_at: str
    ends_at: int
    expires_at: int
    listed_as: str

    @property
    def key(self) -> Key:
        return keys.token_family(self.family_id)

    @property
    def is_live(self) -> bool:
        return self.state == "live" and self.expires_at > clock.now()

    def entry(self, expires_at: int, last_used_at: str) -> CredentialItem:
        """Returns the family's entry in the user's credential index."""
        return CredentialItem(
            user_id=self.user_id,
            local=self.listed_as,
            kind="device",
            client=self.client_id,
            scopes=self.scopes,
            expires_at=expires_at,
            last_used_at=last_used_at,
            created_at=self.created_at,
            family_id=self.family_id,
        )

    def issue_access(self, secret: str, scopes: list[str], lifetime_seconds: int) -> UserTokenItem:
        """Returns the item of a new access token of the family."""
        return UserTokenItem.issue(
            secret,
            user_id=self.user_id,
            kind="oauth",
            scopes=scopes,
            lifetime_seconds=lifetime_seconds,
            listed_as=self.listed_as,
            family_id=self.family_id,
            client_id=self.client_id,
        )


def begin(user_id: str, client_id: str, scopes: list[str], listed_as: str) -> tuple[str, Pair, dict[str, Leg]]:
    """Returns a new family's id, its first pair, and the legs that write it in the caller's transaction.

    `listed_as` is its position in the user's credential index, whose entry the caller writes.
    """
    family_id = ids.new_part()
    access_token = tokens.mint(settings.service_brand + tokens.ACCESS)
    refresh_token = tokens.mint_refresh(family_id)
    now = int(clock.now())
    family = TokenFamilyItem(
        family_id=family_id,
        user_id=user_id,
        client_id=client_id,
        scopes=sorted(scopes),
        state="live",
        current=tokens.digest(refresh_token),
        previous=None,
        rotated_at=now,
        access=[],
        access_scopes=sorted(scopes),
        created_at=clock.timestamp(),
        ends_at=now + FAMILY_SECONDS,
        expires_at=now + REFRESH_SECONDS,
        listed_as=listed_as,
    )
    access = family.issue_access(access_token, scopes, ACCESS_SECONDS)
    family = replace(family, access=[AccessToken.of(access)])
    legs: dict[str, Leg] = {"family": Put(family.to_item()), "access": Put(access.to_item())}
    return family_id, Pair(access_token, ACCESS_SECONDS, refresh_token, access.scopes), legs


def find_family(family_id: str) -> TokenFamilyItem | None:
    return table.find(keys.token_family(family_id), TokenFamilyItem.from_item)


def rotate(refresh_token: str, client_id: str | None = None, scopes: list[str] | None = None) -> Pair:
    """Returns the token's successor pair. For 60 seconds, the token used last returns the same pair again.

    `client_id`, if set, must be the family's; `scopes` narrow the access token. Raises UnknownRefreshToken,
    ScopeNotGranted, and RefreshTokenReused after revoking all tokens of the family. One read, one transaction.
    """
    family_id = known(tokens.family_of(refresh_token), UnknownRefreshToken)
    presented = tokens.digest(refresh_token)

    def attempt() -> Pair:
        family = find_family(family_id)
        if family is None or not family.is_live or client_id not in {None, family.client_id}:
            raise UnknownRefreshToken
        if presented == family.current:
            return _issue_successors(family, refresh_token, _check_scopes(family, scopes))
        if presented == family.previous and clock.now() < family.rotated_at + REPEAT_SECONDS:
            access_token, successor = _current_successors(refresh_token, family)
            left = family.access[-1].expires_at - int(clock.now())
            return Pair(access_token, left, successor, family.access_scopes)
        revoke(family_id, "reused")
        raise RefreshTokenReused

    return retry_on_conflict(attempt, "the token family")


def revoke(
    family_id: str, reason: str, extra_legs: Callable[[TokenFamilyItem], Mapping[str, Leg]] = lambda _: {}
) -> bool:
    """Ends the family, its access tokens, and its index entry in one transaction. Does nothing if it isn't live.

    extra_legs: returns what else to write in the transaction. Returns whether the family was live.
    """

    def attempt() -> bool:
        family = find_family(family_id)
        if family is None or not family.is_live:
            return False
        end = Update(
            family.key,
            "SET #state = :revoked, #reason = :reason, #revokedAt = :at, #access = :none",
            # A concurrent refresh adds an access token that this transaction would miss.
            "#state = :live AND #current = :current",
            {
                "revoked": "revoked",
                "reason": reason,
                "at": clock.timestamp(),
                "none": [],
                "live": "live",
                "current": family.current,
            },
        )
        listed = Delete(keys.credential(family.user_id, family.listed_as))
        legs = {"family": end, "listed": listed, **_deletions(family.access), **extra_legs(family)}
        table.transact_or_retry(legs, Unrecorded.CREDENTIAL)
        return True

    return retry_on_conflict(attempt, "the token family")


def erasure(family: TokenFamilyItem) -> dict[str, Leg]:
    """Returns the legs that delete the family with its access tokens, and fail if it was refreshed concurrently."""
    same = {"current": family.current}
    return {"family": Delete(family.key, "#current = :current", same), **_deletions(family.access)}


def revoke_refresh_token(refresh_token: str, client_id: str | None = None) -> None:
    """Revokes the family of a refresh token, used or not. Ignores any other token."""
    family_id = tokens.family_of(refresh_token)
    if family_id is not None:
        _revoke_of_client(family_id, client_id)


def revoke_access_token(access_token: str, client_id: str | None = None) -> None:
    """Revokes an access token's family, or only the token if it has no family. Ignores an unknown token."""
    token = user_tokens.find_token(access_token)
    if token is None:
        return
    if token.family_id is not None:
        _revoke_of_client(token.family_id, client_id)
    else:
        user_tokens.revoke_token(token)


def _revoke_of_client(family_id: str, client_id: str | None) -> None:
    if client_id is not None:
        family = find_family(family_id)
        if family is None or family.client_id != client_id:
            return
    revoke(family_id, "revoked by the client")


def _current_successors(refresh_token: str, family: TokenFamilyItem) -> tuple[str, str]:
    """Returns the successors of this token that the family already has.

    During a rotation of the signing secret they can be derived from either key, so the family's digest decides. Raises
    UnknownRefreshToken if the key that they were derived from has since left the key ring.
    """
    for access_token, successor in tokens.successors_of(refresh_token):
        if tokens.digest(successor) == family.current:
            return access_token, successor
    raise UnknownRefreshToken


def _check_scopes(family: TokenFamilyItem, scopes: list[str] | None) -> list[str]:
    """Returns the requested scopes, by default the family's. Raises ScopeNotGranted."""
    if scopes is None:
        return family.scopes
    if not set(scopes) <= set(family.scopes):
        raise ScopeNotGranted
    return scopes


def _issue_successors(family: TokenFamilyItem, refresh_token: str, scopes: list[str]) -> Pair:
    """Writes the current token's successors. Raises WriteConflict if the token is no longer the current one."""
    access_token, successor = tokens.successors_of(refresh_token)[0]
    now = int(clock.now())
    # No token outlives its family, because it couldn't be revoked then.
    lifetime = min(ACCESS_SECONDS, family.ends_at - now)
    access = family.issue_access(access_token, scopes, lifetime)
    unexpired = [token for token in family.access if token.expires_at > now]
    kept, dropped = unexpired[1 - LIVE_ACCESS_TOKENS :], unexpired[: 1 - LIVE_ACCESS_TOKENS]
    until = min(now + REFRESH_SECONDS, family.ends_at)
    rotation = Update(
        family.key,
        "SET #previous = #current, #current = :next, #rotatedAt = :now, #access = :access, #accessScopes = :scopes,"
        " #expiresAt = :until",
        "#state = :live AND #current = :current",
        {
            "next": tokens.digest(successor),
            "now": now,
            "access": [token.to_map() for token in [*kept, AccessToken.of(access)]],
            "scopes": access.scopes,
            "until": until,
            "live": "live",
            "current": family.current,
        },
    )
    listed = family.entry(until, clock.timestamp()).upsert()
    table.transact_or_retry(
        {"family": rotation, "access": Put(access.to_item()), "listed": listed, **_deletions(dropped)},
        Unrecorded.CREDENTIAL,
    )
    return Pair(access_token, lifetime, successor, access.scopes)


def _deletions(access: Iterable[AccessToken]) -> dict[str, Leg]:
    return {f"access {number}": Delete(keys.user_token(token.digest)) for number, token in enumerate(access)}

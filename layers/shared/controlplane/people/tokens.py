"""Bearer tokens that act for a user: web sessions, access tokens of devices, and tokens made by the operator.

Only the hash of a token's secret is stored. A token that belongs to a token family is revoked with it
(`people.token_families`); each of the others has its own entry in the credential index.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from controlplane.people import credential_index, users
from controlplane.people.credential_index import CredentialItem
from controlplane.people.users import UnknownUser
from controlplane.platform.core import clock, ids, tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import SPARSE, KeyPart, StoredItem
from controlplane.platform.table.table import (
    ConditionFailed,
    Delete,
    Leg,
    LegFailed,
    Put,
    Throttled,
    Unrecorded,
    Update,
    table,
)

_HOUR_SECONDS = 3600

type Kind = Literal["oauth", "session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTokenItem(StoredItem):
    """A token. `expires_at` is a Unix time; `used_hour` is the hour since the epoch in which it was last used.

    rate_limit, win, hits: the limit per minute, the minute that is being counted, and its requests so far.
    listed_as: the local id of the index entry of the token, or of its family.
    family_id, client_id: set on access tokens of a token family.
    exact_win, exact_from, refused_for: notes of the owner's rate limit (`access.authentication`).
    """

    digest: KeyPart
    user_id: str
    kind: Kind
    scopes: list[str]
    rate_limit: int
    expires_at: int
    used_hour: int
    win: int = 0
    hits: int = 0
    listed_as: str
    family_id: Annotated[str | None, SPARSE] = None
    client_id: Annotated[str | None, SPARSE] = None
    exact_win: Annotated[int | None, SPARSE] = None
    exact_from: Annotated[int | None, SPARSE] = None
    refused_for: Annotated[str | None, SPARSE] = None

    @classmethod
    def issue(
        cls,
        secret: str,
        *,
        user_id: str,
        kind: Kind,
        scopes: list[str],
        lifetime_seconds: int,
        listed_as: str,
        family_id: str | None = None,
        client_id: str | None = None,
    ) -> Self:
        """Returns the item of a new token. Its creation counts as a use in this hour."""
        now = int(clock.now())
        return cls(
            digest=tokens.digest(secret),
            user_id=user_id,
            kind=kind,
            scopes=sorted(scopes),
            rate_limit=settings.requests_per_minute_user_token,
            expires_at=now + lifetime_seconds,
            used_hour=now // _HOUR_SECONDS,
            listed_as=listed_as,
            family_id=family_id,
            client_id=client_id,
        )

    @property
    def key(self) -> Key:
        return keys.user_token(self.digest)


def put_token(
    secret: str,
    user_id: str,
    kind: Kind,
    scopes: list[str],
    lifetime_seconds: int,
    *,
    client: str,
    device_name: str | None = None,
    address: str | None = None,
) -> None:
    """Stores a session's or operator's token, with its entry in the user's credential index.

    client, device_name, address: shown in the index. Raises UnknownUser.
    """
    token = UserTokenItem.issue(
        secret,
        user_id=user_id,
        kind=kind,
        scopes=scopes,
        lifetime_seconds=lifetime_seconds,
        listed_as=ids.new_local(),
    )
    now = clock.timestamp()
    entry = CredentialItem(
        user_id=user_id,
        local=token.listed_as,
        kind="session" if kind == "session" else "token",
        client=client,
        device_name=device_name,
        address=address,
        scopes=token.scopes,
        expires_at=token.expires_at,
        created_at=now,
        last_used_at=now,
        digest=token.digest,
    )
    person = users.exists_check(user_id)
    legs: dict[str, Leg] = {"person": person, "token": Put(token.to_item()), "listed": entry.upsert()}
    table.transact(legs, Unrecorded.CREDENTIAL, otherwise=UnknownUser)


def create_token(user_id: str, scopes: list[str], lifetime_seconds: int) -> str:
    """Creates a bearer secret for the user with the scopes; only its hash is stored. Raises UnknownUser."""
    secret = tokens.mint(settings.service_brand + tokens.ACCESS)
    put_token(secret, user_id, "oauth", scopes, lifetime_seconds, client=credential_index.OPERATOR)
    return secret


def find_token(secret: str) -> UserTokenItem | None:
    """Returns the token, or None if it doesn't exist or was revoked. It can have expired."""
    return table.find(keys.user_token(tokens.digest(secret)), UserTokenItem.from_item)


def revoke_token(token: UserTokenItem) -> None:
    """Revokes a token that doesn't belong to a family, and deletes its index entry. Does nothing if it was revoked."""
    with suppress(LegFailed):
        table.transact(revocation(token), Unrecorded.CREDENTIAL)


def revocation(token: UserTokenItem) -> dict[str, Leg]:
    """Returns the legs that revoke a token that doesn't belong to a family. One fails if it was revoked."""
    listed = Delete(keys.credential(token.user_id, token.listed_as))
    return {"token": Delete(token.key, "attribute_exists(pk)"), "listed": listed}


def note_use(token: UserTokenItem, last_used_hour: int) -> None:
    """Records the time of use in the credential index, once an hour.

    Never recreates the entry of a credential that was revoked concurrently. A failure is retried on a later use.
    """
    hour = int(clock.now()) // _HOUR_SECONDS
    if last_used_hour >= hour:
        return
    key = keys.credential(token.user_id, token.listed_as)
    # If the token was just revoked, or the write is throttled, the request goes on without it.
    with suppress(ConditionFailed, Throttled):
        table.update(
            Update(key, "SET #lastUsedAt = :at", "attribute_exists(pk)", {"at": clock.timestamp()}), Unrecorded.COUNTER
        )

"""Index of each user's credentials: web sessions, devices, and operator-created tokens.

An entry is written in the transaction that creates its credential and removed in the one that ends it, so a live
credential is always listed and a listed one can always be revoked. Credentials from before the index get their entry
when they are used or refreshed, or from the backfill (`ops.credential_backfill`). Revocation is in `store.revocations`.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from controlplane.core import clock, ids
from controlplane.store import keys
from controlplane.store.table import ConditionFailed, Delete, LegFailed, Throttled, Update, table

Kind = Literal["session", "device", "token"]

# Clients that have no OAuth client id.
PAGES, OPERATOR = "dashboard", "assent-ops"
_HOUR_SECONDS = 3600
# An access token of a family from before the index doesn't record when the family expires: at most this much later.
_FAMILY_OUTLIVES_TOKEN_SECONDS = 30 * 24 * 3600


class Credential(NamedTuple):
    """One entry. To revoke it, revoke the token `digest`, else the token family, else the approved device request.

    `created_at` and `last_used_at` (accurate to the hour) are None if unknown. `expires_at` is a Unix time.
    """

    user_id: str
    local: str
    kind: Kind
    client: str
    device_name: str | None
    address: str | None
    scopes: list[str]
    created_at: str | None
    last_used_at: str | None
    expires_at: int
    digest: str | None
    family_id: str | None
    request_digest: str | None

    @property
    def session_id(self) -> str:
        return ids.session_id(self.local)

    @property
    def is_live(self) -> bool:
        return self.expires_at > clock.now()


class CredentialPage(NamedTuple):
    """Entries, newest first, and the sort key after which the next page starts (None on the last page)."""

    credentials: list[Credential]
    next_sk: str | None


def local_of(item: Mapping[str, Any]) -> str:
    """Returns the local id under which the credential of a token, family, or device request is listed.

    Items from before the index don't store it: it is derived from their key, or for access tokens from the family's.
    """
    if "listedAs" in item:
        return str(item["listedAs"])
    in_family = item["sk"] == keys.user_token("").sk and "familyId" in item
    return ids.oldest_local("credential", keys.token_family(item["familyId"]).pk if in_family else item["pk"])


def entry(
    user_id: str,
    local: str,
    kind: Kind,
    *,
    client: str,
    scopes: list[str],
    expires_at: int,
    last_used_at: str | None,
    created_at: str | None = None,
    device_name: str | None = None,
    address: str | None = None,
    digest: str | None = None,
    family_id: str | None = None,
    request_digest: str | None = None,
) -> Update:
    """Returns the leg that upserts an entry. Existing values about its origin are kept."""
    lasting = {
        "userId": user_id,
        "kind": kind,
        "client": client,
        "scopes": sorted(scopes),
        "deviceName": device_name,
        "address": address,
        "createdAt": created_at,
        "requestDigest": request_digest,
    }
    changing = {
        "lastUsedAt": last_used_at,
        "expiresAt": expires_at,
        "digest": digest,
        "familyId": family_id,
    }
    parts = [f"#{name} = if_not_exists(#{name}, :{name})" for name in lasting]
    parts += [f"#{name} = :{name}" for name in changing]
    return Update(keys.credential(user_id, local), f"SET {', '.join(parts)}", values={**lasting, **changing})


def removal(item: Mapping[str, Any]) -> Delete:
    """Returns the leg that removes the entry of a token, family, or approved device request."""
    return Delete(keys.credential(item["userId"], local_of(item)))


def of_token(item: Mapping[str, Any]) -> Update:
    """Returns the leg that writes the entry of a token from before the index."""
    hour = item["usedHour"]
    used_at = clock.timestamp(hour * _HOUR_SECONDS) if hour else None
    known: dict[str, Any] = {"scopes": item["scopes"], "expires_at": item["expiresAt"], "last_used_at": used_at}
    if "familyId" in item:
        known["expires_at"] += _FAMILY_OUTLIVES_TOKEN_SECONDS
        known |= {"client": item["clientId"], "family_id": item["familyId"]}
        return entry(item["userId"], local_of(item), "device", **known)
    known["digest"] = item["pk"].partition("#")[2]
    if item["kind"] == "session":
        return entry(item["userId"], local_of(item), "session", client=PAGES, **known)
    return entry(item["userId"], local_of(item), "token", client=OPERATOR, **known)


def note_use(item: Mapping[str, Any], last_used_hour: int) -> None:
    """Records the time of use, once an hour. Adds the entry of a token from before the index.

    Never recreates the entry of a credential that was revoked concurrently. A failure is retried on a later use.
    """
    hour = int(clock.now()) // _HOUR_SECONDS
    try:
        if "listedAs" not in item:
            list_older_token(item)
        elif last_used_hour < hour:
            key = keys.credential(item["userId"], item["listedAs"])
            table.update(Update(key, "SET #lastUsedAt = :at", "attribute_exists(pk)", {"at": clock.timestamp()}))
    except (ConditionFailed, LegFailed, Throttled):
        pass  # just revoked, or throttled: no reason to reject the request


def list_older_token(item: Mapping[str, Any]) -> None:
    """Lists a token from before the index. Raises LegFailed if it no longer exists."""
    mark = Update(
        keys.Key(item["pk"], item["sk"]), "SET #listedAs = :local", "attribute_exists(pk)", {"local": local_of(item)}
    )
    table.transact({"token": mark, "listed": of_token(item)})


def list_credentials(user_id: str, limit: int, after: str | None = None) -> CredentialPage:
    """Returns a page of the user's entries, newest first. It can include expired ones that TTL has not removed yet.

    Consistent: a user who has just revoked a device must not see it.
    """
    page = table.query(
        keys.credentials_pk(user_id),
        prefix=keys.CREDENTIAL_PREFIX,
        after=after,
        newest_first=True,
        limit=limit,
        consistent=True,
    )
    return CredentialPage([_credential(item) for item in page.items], page.next_sk)


def find_credential(user_id: str, session_id: str) -> Credential | None:
    """Returns the user's live credential with that id, or None. Consistent, because a revocation follows."""
    local = ids.local_of_session(session_id)
    item = table.get(keys.credential(user_id, local)) if local else None
    found = _credential(item) if item else None
    return found if found and found.is_live else None


def is_complete() -> bool:
    """Returns True if every credential is listed. False until the backfill has finished."""
    progress = table.get(keys.credential_backfill())
    return progress is not None and progress.get("completedAt") is not None


def _credential(item: Mapping[str, Any]) -> Credential:
    return Credential(
        user_id=item["userId"],
        local=item["sk"].removeprefix(keys.CREDENTIAL_PREFIX),
        kind=item["kind"],
        client=item["client"],
        device_name=item["deviceName"],
        address=item["address"],
        scopes=item["scopes"],
        created_at=item["createdAt"],
        last_used_at=item["lastUsedAt"],
        expires_at=item["expiresAt"],
        digest=item["digest"],
        family_id=item["familyId"],
        request_digest=item["requestDigest"],
    )

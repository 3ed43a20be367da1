"""Index of each user's credentials: web sessions, devices, and operator-created tokens.

An entry is written in the transaction that creates its credential and removed in the one that ends it, so a live
credential is always listed and a listed one can always be revoked. Revocation is in `people.revocations`.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from controlplane.platform.core import clock, ids
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import Derived, StoredItem
from controlplane.platform.table.table import QueryPage, Update, table

type Kind = Literal["session", "device", "token"]

# Clients that have no OAuth client id.
PAGES, OPERATOR = "dashboard", "assent-ops"
# Attributes that an upsert overwrites. All others keep their stored values: they describe how the entry was created.
_RENEWED = {"lastUsedAt", "expiresAt", "digest", "familyId"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialItem(StoredItem):
    """One entry. To revoke it, revoke the token `digest`, else the token family, else the approved device request.

    `last_used_at` is accurate to the hour. `expires_at` is a Unix time.
    """

    user_id: str
    local: Annotated[str, Derived(lambda item: item["sk"].removeprefix(keys.CREDENTIAL_PREFIX))]
    kind: Kind
    client: str
    scopes: list[str]
    expires_at: int
    device_name: str | None = None
    address: str | None = None
    created_at: str
    last_used_at: str
    digest: str | None = None
    family_id: str | None = None
    request_digest: str | None = None

    @property
    def key(self) -> Key:
        return keys.credential(self.user_id, self.local)

    @property
    def session_id(self) -> str:
        return ids.session_id(self.local)

    @property
    def is_live(self) -> bool:
        return self.expires_at > clock.now()

    def upsert(self) -> Update:
        """Returns the leg that adds or renews the entry."""
        values = self.to_map()
        assignments = [
            f"#{name} = :{name}" if name in _RENEWED else f"#{name} = if_not_exists(#{name}, :{name})"
            for name in values
        ]
        return Update(self.key, f"SET {', '.join(assignments)}", values=values)


def list_credentials(user_id: str, limit: int, after: str | None = None) -> QueryPage[CredentialItem]:
    """Returns a page of the user's entries, newest first. It can include expired ones that TTL has not removed yet.

    Consistent: a user who has just revoked a device must not see it.
    """
    return table.query(
        keys.credentials_pk(user_id),
        prefix=keys.CREDENTIAL_PREFIX,
        after=after,
        newest_first=True,
        limit=limit,
        consistent=True,
    ).read(CredentialItem.from_item)


def list_all_credentials(user_id: str) -> list[CredentialItem]:
    """Returns all of the user's entries, newest first, in one query. Consistent."""
    pk, prefix = keys.credentials_pk(user_id), keys.CREDENTIAL_PREFIX
    return table.query(pk, prefix=prefix, newest_first=True, consistent=True).read(CredentialItem.from_item).items


def find_credential(user_id: str, session_id: str) -> CredentialItem | None:
    """Returns the user's live credential with that id, or None. Consistent, because a revocation follows."""
    local = ids.local_of_session(session_id)
    found = table.find(keys.credential(user_id, local), CredentialItem.from_item) if local else None
    return found if found and found.is_live else None

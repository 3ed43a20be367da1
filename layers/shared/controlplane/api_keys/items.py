"""The two items of an API key: the one that lists show, and the one that authenticates.

Both have the key's restrictions. The one that authenticates returns them with the write that counts a request, so they
cost no further call. Attributes of restrictions that a key doesn't have aren't stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from controlplane.platform.core import clock
from controlplane.platform.core.ids import KeyId, ProjectId, organization_of
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import present
from controlplane.platform.table.stored import FLAT, SPARSE, Derived, KeyPart, Named, StoredItem, StoredMap


def _read_projects(item: Mapping[str, Any]) -> tuple[ProjectId, ...] | None:
    if (projects := item.get("projects")) is None:
        return None
    return tuple(ProjectId.of(organization_of(item["keyId"]), it) for it in projects)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrictions(StoredMap):
    """The restrictions of a key. None: it isn't limited in that respect.

    allowed_ips: the networks (CIDR) that requests may come from.
    expires_at: the time from which the key is rejected, in Unix seconds. It isn't stored as `expiresAt`, by which the
    table deletes items.
    """

    scopes: Annotated[tuple[str, ...] | None, SPARSE] = None
    project_ids: Annotated[tuple[ProjectId, ...] | None, Derived(_read_projects)] = None
    allowed_ips: Annotated[tuple[str, ...] | None, SPARSE] = None
    expires_at: Annotated[int | None, SPARSE, Named("validUntil")] = None

    def to_map(self) -> dict[str, Any]:
        """Returns the attributes. A project is stored as its ID's local part: each request writes the item's size."""
        projects = None if self.project_ids is None else [it.local for it in self.project_ids]
        return {**StoredMap.to_map(self), **present(projects=projects)}

    @property
    def has_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= clock.now()

    @property
    def expires_at_text(self) -> str | None:
        return None if self.expires_at is None else clock.timestamp(self.expires_at)

    def describe(self) -> dict[str, Any]:
        """Returns the restrictions as an entry of the audit log shows them."""
        return present(
            scopes=self.scopes, projectIds=self.project_ids, allowedIps=self.allowed_ips, expiresAt=self.expires_at_text
        )


UNRESTRICTED = Restrictions()


class KeyDraft(NamedTuple):
    """The choices of a person about a key."""

    name: str
    description: str | None = None
    restrictions: Restrictions = UNRESTRICTED


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousSecret(StoredMap):
    """The secret of the key that was rolled. It works until the grace period ends, in Unix seconds.

    key_id, start: of the key that was rolled. digest: locates the authenticating item, which is deleted later.
    """

    key_id: KeyId
    start: str
    digest: str
    until: int

    @property
    def works(self) -> bool:
        return self.until > clock.now()

    @property
    def until_text(self) -> str:
        return clock.timestamp(self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyItem(StoredItem):
    """A key as shown in lists. `digest` locates its authenticating item.

    revision: the number of changes since the key was created.
    previous: the secret of the key that this one replaced, if it was rolled with a grace period.
    """

    key_id: KeyId
    name: str
    start: str
    digest: str
    rate_limit: int
    created_at: str
    created_by: str
    created_from: str
    last_used_at: str | None = None
    description: Annotated[str | None, SPARSE] = None
    restrictions: Annotated[Restrictions, FLAT] = UNRESTRICTED
    revision: Annotated[int, SPARSE] = 0
    previous: Annotated[PreviousSecret | None, SPARSE] = None

    @property
    def key(self) -> Key:
        return keys.api_key(*self.key_id.location)

    @property
    def draft(self) -> KeyDraft:
        """The choices about the key, with which another one replaces it."""
        return KeyDraft(self.name, self.description, self.restrictions)

    def describe(self) -> dict[str, Any]:
        """Returns the key as an entry of the audit log shows it."""
        shown = {"name": self.name, "rateLimit": self.rate_limit}
        return shown | present(description=self.description) | self.restrictions.describe()

    @property
    def secret_keys(self) -> list[Key]:
        """The keys of the authenticating items, of which the second may not exist anymore."""
        return [keys.key_secret(it) for it in (self.digest, self.previous and self.previous.digest) if it]

    @property
    def working_secret_keys(self) -> list[Key]:
        """The keys of the authenticating items, without one whose grace period has ended."""
        return self.secret_keys[: 2 if self.working_previous else 1]

    @property
    def working_previous(self) -> PreviousSecret | None:
        """The previous secret, if its grace period hasn't ended."""
        return self.previous if self.previous is not None and self.previous.works else None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySecretItem(StoredItem):
    """A key's authenticating item, with copies of the organization's slug, name, and plan.

    rate_limit, win, hits: the limit per minute, the minute that is being counted, and its requests so far.
    used_hour: the hour since the epoch in which the key was last used.
    refused_for: a note of the organization's rate limit (`access.authentication`).
    restrictions: those of the key. The expiry is the end of the grace period if that is earlier.
    successor: the key that replaced this one, whose secret works until the end of a grace period.
    """

    digest: KeyPart
    key_id: KeyId
    organization_id: str
    slug: str
    name: str
    plan: str
    created_by: str
    rate_limit: int
    win: int = 0
    hits: int = 0
    used_hour: int = 0
    refused_for: Annotated[str | None, SPARSE] = None
    restrictions: Annotated[Restrictions, FLAT] = UNRESTRICTED
    successor: Annotated[KeyId | None, SPARSE] = None

    @property
    def key(self) -> Key:
        return keys.key_secret(self.digest)

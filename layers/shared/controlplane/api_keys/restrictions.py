"""The limits of an API key: scopes, projects, client addresses, and a time.

Both items of a key have the restrictions. The one that authenticates returns them with the write that counts a request,
so they cost no further call. Attributes of restrictions that a key doesn't have aren't stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from controlplane.platform.core import clock
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.table.codec import present


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrictions:
    """The restrictions of a key. None: it isn't limited in that respect.

    networks: the networks (CIDR) that requests may come from.
    expires_at: the time from which the key is rejected, in Unix seconds.
    """

    scopes: tuple[str, ...] | None = None
    project_ids: tuple[ProjectId, ...] | None = None
    networks: tuple[str, ...] | None = None
    expires_at: int | None = None

    @classmethod
    def from_item(cls, item: Mapping[str, Any], organization_id: str) -> Self:
        scopes, projects, networks = item.get("scopes"), item.get("projects"), item.get("networks")
        return cls(
            scopes=None if scopes is None else tuple(scopes),
            project_ids=None if projects is None else tuple(ProjectId.of(organization_id, it) for it in projects),
            networks=None if networks is None else tuple(networks),
            expires_at=item.get("validUntil"),
        )

    def to_item(self) -> dict[str, Any]:
        """Returns the attributes. A project is stored as its ID's local part: each request writes the item's size.

        The time isn't called `expiresAt`, by which the table deletes items.
        """
        projects = None if self.project_ids is None else [it.local for it in self.project_ids]
        return present(
            scopes=None if self.scopes is None else [*self.scopes],
            projects=projects,
            networks=None if self.networks is None else [*self.networks],
            validUntil=self.expires_at,
        )

    @property
    def has_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= clock.now()

    @property
    def expires_at_text(self) -> str | None:
        return None if self.expires_at is None else clock.timestamp(self.expires_at)

    def describe(self) -> dict[str, Any]:
        """Returns the restrictions as an entry of the audit log shows them."""
        return present(
            scopes=self.scopes, projectIds=self.project_ids, allowedIps=self.networks, expiresAt=self.expires_at_text
        )


UNRESTRICTED = Restrictions()

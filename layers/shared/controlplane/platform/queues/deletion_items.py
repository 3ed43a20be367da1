"""The work that a deletion leaves: what is deleted writes an item, and `cleanup` does the rest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.codec import present
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Put


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionItem:
    """Cleanup that is left to do after a deletion, or after a scan that supersedes others.

    subject_id: the deleted project, repository, organization, or account, or the completed scan.
    step: how many kinds of items are removed; None before the first page. `after` is the position in the next kind.
    final: True if everything was removed once, and is removed again for late writers.
    created_at: when the organization was created, if it is one; its audit log began then.
    address: that of a deleted account, until everything was removed once.
    """

    key: Key
    subject_id: str
    deleted_at: str
    step: int | None = None
    after: str | None = None
    final: bool = False
    created_at: str | None = None
    address: str | None = None

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            key=Key(item["pk"], item["sk"]),
            subject_id=item["sk"],
            deleted_at=item["deletedAt"],
            step=item.get("step"),
            after=item.get("after"),
            final=item.get("final", False),
            created_at=item.get("createdAt"),
            address=item.get("address"),
        )


def work_item(subject_id: str, created_at: str | None = None, address: str | None = None) -> Put:
    """Returns the leg that schedules the cleanup of a deleted project, repository, organization, or account.

    For a completed scan, it schedules the expiry of the findings of the scans it supersedes.
    """
    more = present(createdAt=created_at, address=address)
    return Put({**keys.deletion(subject_id)._asdict(), "deletedAt": clock.timestamp(), **more})

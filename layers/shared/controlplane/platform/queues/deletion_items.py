"""The work that a deletion leaves: what is deleted writes an item, and `cleanup` does the rest."""

from dataclasses import dataclass
from typing import Annotated, Final

from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import OWN_KEY, SPARSE, Named, StoredItem
from controlplane.platform.table.table import Put

# Begins the subject of a repository that was unlinked from a project.
UNLINKED: Final = "unlinked_"
# Follows a deleted audit in the subject, before its project.
IN_PROJECT: Final = "@"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionItem(StoredItem):
    """Cleanup that is left to do after a deletion, or after a scan that supersedes others.

    subject_id: the deleted project, repository, organization, or account, the completed scan, the repository that was
        unlinked from a project, after UNLINKED, or the deleted audit with its project: `aud_01j…@prj_2f…`.
    step: how many kinds of items are removed; None before the first page. `after` is the position in the next kind.
    final: True if everything was removed once, and is removed again for late writers.
    created_at: when the organization was created, if it is one; its audit log began then.
    address: that of a deleted account, until everything was removed once.
    """

    key: Annotated[Key, OWN_KEY]
    subject_id: Annotated[str, Named("sk")]
    deleted_at: str
    step: Annotated[int | None, SPARSE] = None
    after: Annotated[str | None, SPARSE] = None
    final: Annotated[bool, SPARSE] = False
    created_at: Annotated[str | None, SPARSE] = None
    address: Annotated[str | None, SPARSE] = None


def work_item(subject_id: str, created_at: str | None = None, address: str | None = None) -> Put:
    """Returns the leg that schedules the cleanup of what was deleted, or of a link.

    For a completed scan, it schedules the expiry of the findings of the scans it supersedes.
    """
    work = DeletionItem(
        key=keys.deletion(subject_id),
        subject_id=subject_id,
        deleted_at=clock.timestamp(),
        created_at=created_at,
        address=address,
    )
    return Put(work.to_item())

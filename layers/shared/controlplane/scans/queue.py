"""Scans that wait until their repository has no other: the newest for the production branch and each pull request."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from controlplane.platform.core import clock
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import StoredItem
from controlplane.platform.table.table import ConditionFailed, Delete, Put, Unrecorded, table
from controlplane.scans.causes import Cause

# How long a scan is started again after the code host was unavailable.
_RETRIED_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedScan(StoredItem):
    """A scan that is to start, but not before `not_before`, in Unix seconds."""

    repository_id: RepositoryId
    project_id: ProjectId
    cause: Cause
    queued_at: str
    not_before: int

    @classmethod
    def of(cls, repository_id: RepositoryId, project_id: ProjectId, cause: Cause, *, wait_seconds: int = 0) -> Self:
        now = int(clock.now())
        if cause.retry_until is None:
            cause = cause._replace(retry_until=now + _RETRIED_SECONDS)
        return cls(
            repository_id=repository_id,
            project_id=project_id,
            cause=cause,
            queued_at=clock.timestamp(),
            not_before=now + wait_seconds,
        )

    @property
    def key(self) -> Key:
        return keys.queued_scan(self.repository_id, self.project_id.local, self.cause.subject)

    def taken_leg(self) -> Delete:
        """Returns the leg that takes the entry out of the queue. Fails if a newer one has replaced it."""
        return Delete(self.key, "#queuedAt = :at", {"at": self.queued_at})


def enqueue(queued: QueuedScan) -> None:
    """Queues the scan in place of an older one with the same subject."""
    table.put(Put(queued.to_item()), Unrecorded.MESSAGE)


def list_queued(repository_id: RepositoryId) -> list[QueuedScan]:
    """Returns the repository's queued scans that may start, the oldest first. Consistent."""
    page = table.query(keys.scan_queue_pk(repository_id), prefix=f"{repository_id}#", consistent=True)
    queued = map(QueuedScan.from_item, page.items)
    return sorted((it for it in queued if it.not_before <= clock.now()), key=lambda it: it.queued_at)


def find_last_turns(repository_ids: Iterable[RepositoryId]) -> dict[RepositoryId, str]:
    """Returns when a scan of each repository was last started by itself; empty if it never was. Consistent."""
    distinct = [*dict.fromkeys(repository_ids)]
    items = table.batch_get([keys.repository(*repository_id.location) for repository_id in distinct])
    found = zip(distinct, items, strict=True)
    return {repository_id: (item or {}).get("lastTurnAt", "") for repository_id, item in found}


def drop(queued: QueuedScan) -> None:
    """Removes an entry that is no longer wanted, unless a newer one has replaced it."""
    with suppress(ConditionFailed):
        table.delete(queued.taken_leg(), Unrecorded.MESSAGE)


def drop_subject(repository_id: RepositoryId, project_id: ProjectId, cause: Cause) -> None:
    """Removes the entry of the subject, if there is one."""
    table.delete(Delete(keys.queued_scan(repository_id, project_id.local, cause.subject)), Unrecorded.MESSAGE)


def is_queued(repository_id: RepositoryId, project_id: ProjectId, cause: Cause) -> bool:
    """Returns whether the subject has an entry. Consistent."""
    return table.get(keys.queued_scan(repository_id, project_id.local, cause.subject)) is not None

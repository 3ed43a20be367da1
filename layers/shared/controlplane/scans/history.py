"""The findings of a repository over all of its scans: when each was first seen, where it is now, and if it is gone.

A finding keeps its fingerprint when its file is renamed or its code is edited. It then has a `place`, which is the
fingerprint that the analysis computes from its new path and code. Only the worker that runs the repository's active
scan writes here, and each write checks the worker's lease.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from controlplane.platform.core.ids import RepositoryId
from controlplane.platform.table import keys, leases
from controlplane.platform.table.keys import Key
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.stored import SPARSE, Derived, StoredItem
from controlplane.platform.table.table import Check, Leg, LegFailed, Put, Unrecorded, table

# A transaction has at most 100 legs; one checks the lease.
_MOST_PUTS = 99


class Absence(NamedTuple):
    """The scan that no longer found a finding in any project, and when that scan was created."""

    scan_id: str
    since: str


def _repository_of(pk: str) -> RepositoryId:
    return RepositoryId.stored(pk.removeprefix(keys.finding_history_pk("")))


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryItem(StoredItem):
    """A finding of a repository.

    content, ordinal, shape: see `openassent_analysis.fingerprints`. project_ids: the projects whose scans find it.
    gone: set if the last scan didn't find it.
    unsettled: it is gone, but its inbox item isn't known to be resolved.
    """

    repository_id: Annotated[RepositoryId, Derived(lambda item: _repository_of(item["pk"]))]
    fingerprint: Annotated[str, Derived(lambda item: item["sk"].removeprefix(keys.FINDING_HISTORY_PREFIX))]
    first_seen_at: str
    rule_id: str
    content: str
    ordinal: Annotated[int, SPARSE] = 0
    shape: str
    path: str
    place: Annotated[str | None, SPARSE] = None
    project_ids: Annotated[tuple[str, ...], SPARSE] = ()
    gone: Annotated[Absence | None, SPARSE] = None
    unsettled: Annotated[bool, SPARSE] = False

    @property
    def key(self) -> Key:
        return keys.finding_history(self.repository_id, self.fingerprint)


def list_history(repository_id: RepositoryId) -> dict[str, HistoryItem]:
    """Returns everything that was ever found in the repository, by fingerprint. Consistent."""
    page = table.query(keys.finding_history_pk(repository_id), prefix=keys.FINDING_HISTORY_PREFIX, consistent=True)
    return {found.fingerprint: found for found in map(HistoryItem.from_item, page.items)}


def put_history(lease: Lease, items: Sequence[HistoryItem]) -> None:
    """Writes the items, in transactions that check the lease of the running scan. Raises leases.LeaseLost."""
    for start in range(0, len(items), _MOST_PUTS):
        part = items[start : start + _MOST_PUTS]
        legs: dict[str, Leg] = {"scan": held(lease), **{item.fingerprint: Put(item.to_item()) for item in part}}
        try:
            table.transact(legs, Unrecorded.PUBLICATION)
        except LegFailed:
            raise leases.LeaseLost from None


def held(lease: Lease) -> Check:
    """Returns the leg that checks that the worker still runs the scan."""
    values = {"claim": lease.claim, "running": "running"}
    return Check(lease.key, f"{leases.HELD} AND #status = :running", values)

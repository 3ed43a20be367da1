"""Background cleanup of deletions. It removes all leftover items, even if a sweep crashes at any point.

Work is done in pages of at most 100 items. The position is stored after each page that is not the last of its kind, and
the work item is removed last, so a crash loses no work and every page can be repeated. `leftovers` and `deletions`
define what is removed, page by page. A completed scan also leaves a work item, for the expiry of earlier scans'
findings.

Requests and workers that started before the deletion may still write. So everything is removed twice: immediately, and
again after SETTLED_AFTER_SECONDS, which is longer than any function runs.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from controlplane.erasure import deletions, leftovers
from controlplane.platform.core import clock, ids
from controlplane.platform.core.ids import ScanId
from controlplane.platform.queues.deletion_items import UNLINKED, DeletionItem
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.table import ConditionFailed, Delete, Unrecorded, Update, table
from controlplane.scans.findings import expire_superseded

# Twice the longest function timeout (scan_execution, 420 s in template.yaml), plus a minute for clock skew.
SETTLED_AFTER_SECONDS = 900

_STEPS: dict[str, tuple[leftovers.Step, ...]] = {
    ids.ProjectId.prefix: leftovers.OF_PROJECT,
    ids.RepositoryId.prefix: leftovers.OF_REPOSITORY,
    ids.ORGANIZATION: leftovers.OF_ORGANIZATION,
    UNLINKED.rstrip("_"): (leftovers.remove_uses,),
    ids.AUDIT: (leftovers.resolve_findings,),
}
# A late report checks the audit in each transaction, so its deletion needs no second pass.
_DONE_AT_ONCE = f"{ids.AUDIT}_"


def finish_deletions(run: SweepRun) -> None:
    """Runs a sweep step: processes deletions until all are done or waiting for late writers.

    Deletions take turns, page by page, so that a large one doesn't delay the others. Also handles scans that supersede
    others, without counting them.
    """
    is_busy = True
    while is_busy and not run.is_over:
        is_busy = False
        for item in run.entries(keys.DELETIONS_PKS):
            with run.isolating(item):
                deletion = DeletionItem.from_item(item)
                if _is_waiting(deletion):
                    continue
                remaining = _continue(deletion)
                if remaining is None:
                    run.finished += not _is_scan(deletion)
                elif not _is_waiting(remaining):
                    is_busy = True


def _is_scan(deletion: DeletionItem) -> bool:
    return deletion.subject_id.startswith(f"{ids.ScanId.prefix}_")


def _is_waiting(deletion: DeletionItem) -> bool:
    """Returns True if everything was removed once and late writes are still possible."""
    return deletion.final and not _is_settled(deletion)


def _is_settled(deletion: DeletionItem) -> bool:
    return datetime.fromisoformat(deletion.deleted_at).timestamp() + SETTLED_AFTER_SECONDS <= clock.now()


def _continue(deletion: DeletionItem) -> DeletionItem | None:
    """Removes leftovers until a page is followed by another one of its kind.

    Returns the updated work item, or None if the deletion is finished.
    """
    if _is_scan(deletion):
        expire_superseded(ScanId.stored(deletion.subject_id))
        table.delete(Delete(deletion.key), Unrecorded.CLEANUP)
        return None
    final = deletion.final or (deletion.step is None and _is_settled(deletion))
    after = deletion.after
    steps = _steps_of(deletion, final=final)
    for number in range(deletion.step or 0, len(steps)):
        after = steps[number](after)
        if after is not None:
            return _store_position(deletion, {"step": number, "after": after, "final": final})
    if final or deletion.subject_id.startswith(_DONE_AT_ONCE):
        table.delete(Delete(deletion.key), Unrecorded.CLEANUP)
        return None
    forgotten = {"address": None} if deletion.address else {}
    return _store_position(deletion, {"step": 0, "after": None, "final": True, **forgotten})


def _steps_of(deletion: DeletionItem, *, final: bool) -> list[Callable[[str | None], str | None]]:
    """Returns the steps of the deletion. Each takes a position and returns the next one."""
    if ids.is_root(ids.USER, deletion.subject_id):
        account = deletions.FormerAccount(deletion.subject_id, deletion.address)
        return [partial(step, account) for step in deletions.STEPS]
    subject = leftovers.Subject.of(deletion, final=final)
    return [partial(step, subject) for step in _STEPS[deletion.subject_id.partition("_")[0]]]


def _store_position(deletion: DeletionItem, position: dict[str, Any]) -> DeletionItem | None:
    advance = Update(deletion.key, set_expression(position), "attribute_exists(pk)", position)
    try:
        return DeletionItem.from_item(table.update(advance, Unrecorded.CLEANUP))
    except ConditionFailed:
        return None  # another call has finished the deletion

"""Background cleanup of deletions. It removes all leftover items, even if a sweep crashes at any point.

Work is done in pages of at most 100 items. The position is stored after each page that is not the last of its kind, and
the work item is removed last, so a crash loses no work and every page can be repeated. `leftovers` defines what is
removed, page by page. A completed scan also leaves a work item: it sets the expiry of earlier scans' findings.

Requests and workers that started before the deletion may still write. So everything is removed twice: immediately, and
again after SETTLED_AFTER_SECONDS, which is longer than any function runs.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.core import clock, ids
from controlplane.store import findings, keys, leftovers
from controlplane.store.keys import Key
from controlplane.store.sweep_runs import SweepRun
from controlplane.store.table import ConditionFailed, Delete, Update, table

# Twice the longest function timeout (scan_execution, 420 s in template.yaml), plus a minute for clock skew.
SETTLED_AFTER_SECONDS = 900

_PAGE = 100
_STEPS: dict[str, tuple[leftovers.Step, ...]] = {
    ids.PROJECT: leftovers.OF_PROJECT,
    ids.REPOSITORY: leftovers.OF_REPOSITORY,
    ids.ORGANIZATION: leftovers.OF_ORGANIZATION,
}


def finish_deletions(run: SweepRun) -> None:
    """Runs a sweep step: processes deletions until all are done or waiting for late writers.

    Deletions take turns, page by page, so that a large one doesn't delay the others. Also handles scans that supersede
    others, without counting them.
    """
    is_busy = True
    while is_busy and not run.is_over:
        is_busy = False
        for work in run.entries(keys.DELETIONS_PKS):
            with run.isolating(work):
                if _waits(work):
                    continue
                after = _work(work)
                if after is None:
                    run.finished += not _is_scan(work)
                elif not _waits(after):
                    is_busy = True


def _is_scan(work: Mapping[str, Any]) -> bool:
    return str(work["sk"]).startswith(f"{ids.SCAN}_")


def _waits(work: Mapping[str, Any]) -> bool:
    """Returns True if everything was removed once and late writes are still possible."""
    return bool(work.get("final") and not _is_settled(work))


def _is_settled(work: Mapping[str, Any]) -> bool:
    decided = datetime.fromisoformat(work["deletedAt"]).timestamp()
    return decided + SETTLED_AFTER_SECONDS <= clock.now()


def _work(work: dict[str, Any]) -> dict[str, Any] | None:
    """Removes leftovers until a page is followed by another one of its kind.

    Returns the updated work item, or None if the deletion is finished.
    """
    key, subject_id = Key(work["pk"], work["sk"]), work["sk"]
    if _is_scan(work):
        findings.expire_before(subject_id)
        table.delete(Delete(key))
        return None
    final = work.get("final", False) or ("step" not in work and _is_settled(work))
    subject = leftovers.Subject.of(subject_id, final=final)
    after = work.get("after")
    steps = _STEPS[subject_id.partition("_")[0]]
    for number in range(work.get("step", 0), len(steps)):
        after = steps[number](subject, after)
        if after is not None:
            return _advanced(key, {"step": number, "after": after, "final": final})
    if final:
        table.delete(Delete(key))
        return None
    return _advanced(key, {"step": 0, "after": None, "final": True})


def _advanced(key: Key, position: dict[str, Any]) -> dict[str, Any] | None:
    change = "SET " + ", ".join(f"#{name} = :{name}" for name in position)
    try:
        return table.update(Update(key, change, "attribute_exists(pk)", position))
    except ConditionFailed:
        return None  # another call has finished the deletion

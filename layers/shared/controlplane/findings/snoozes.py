"""Opens findings at the end of their dismissals, as a step of the sweep.

The change that sets an end writes an entry under its time. If the finding has another status or another end by then,
the entry is only deleted.
"""

from contextlib import suppress

from controlplane.findings import inbox
from controlplane.findings.items import InboxItem
from controlplane.platform.core import clock
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.queues import messages
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Delete, LegFailed, Unrecorded, table


def reopen_due(run: SweepRun) -> None:
    """Opens the findings whose dismissals have ended. Runs as a step of the sweep."""
    now = clock.timestamp()
    for entry in run.entries(keys.SNOOZES_PKS, before=now):
        with run.isolating(entry):
            until = entry["sk"].partition("#")[0]
            item = inbox.find_items([InboxItemId.stored(entry["itemId"])]).get(entry["itemId"])
            if item is None or not _is_due(item, until):
                table.delete(Delete(Key(entry["pk"], entry["sk"])), Unrecorded.PROGRESS)
                continue
            with suppress(LegFailed):  # it was changed just now: the next run looks again
                messages.dispatch(*inbox.reopen(item, until))
                run.finished += 1


def _is_due(item: InboxItem, until: str) -> bool:
    """Returns whether the finding is dismissed until then, and not only about vendors that are ignored by now."""
    ignored = {it.vendor_id for it in item.decisions if it.state == "ignored"}
    is_settled = bool(item.vendor_ids) and len(ignored) == len(item.decisions) == len(item.vendor_ids)
    return item.status == "dismissed" and item.dismissed_until == until and not is_settled

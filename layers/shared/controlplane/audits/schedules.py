"""Steps of the sweep: starts the runs that are due, and ends those that no worker will report."""

from contextlib import suppress
from datetime import datetime

from controlplane.audits.items import AuditItem, Reason, RunItem
from controlplane.audits.store import find_audit, new_run, starting
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import ProjectId, RunId
from controlplane.platform.core.schedules import next_run
from controlplane.platform.queues import messages
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import Record, set_expression
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import (
    Check,
    Delete,
    Leg,
    LegFailed,
    Recorded,
    Unrecorded,
    Update,
    table,
)

_LOST = Reason("lost", "The run has no report after three hours, or its audit was deleted.")


def start_due(run: SweepRun) -> None:
    """Starts the runs that are due by their audit's schedule, and replaces their entries by the next ones.

    An audit without a proof of ownership, or with an active run, waits for its next time. Runs that were missed,
    because no sweep ran, are made up for by one run.
    """
    for entry in run.entries(keys.AUDIT_SCHEDULE_PKS, before=clock.timestamp()):
        with run.isolating(entry):
            audit = find_audit(ProjectId.stored(entry["projectId"]), entry["auditId"])
            at = datetime.fromisoformat(entry["sk"].partition("#")[0]).timestamp()
            key = Key(entry["pk"], entry["sk"])
            if (
                audit is None
                or not audit.schedule
                or next_run(audit.schedule, audit.audit_id, audit.project_id, at - 1) != at
            ):
                table.delete(Delete(key), Unrecorded.MESSAGE)
                continue
            run.finished += _take_turn(audit, key)


def _take_turn(audit: AuditItem, due: Key) -> bool:
    """Replaces the entry by the next one, and starts a run if the audit may. Returns whether it did."""
    legs: dict[str, Leg] = {"due": Delete(due, "attribute_exists(pk)"), **audit.schedule_legs()}
    sent: tuple[Entry, ...] = ()
    record: Record = Unrecorded.MESSAGE
    if audit.proof is not None and audit.active_run_id is None:
        of_run, message, record = starting(audit, new_run(audit, "schedule"))
        legs, sent = {**legs, **of_run}, (message,)
    else:
        legs["audit"] = Check(audit.key, "attribute_exists(pk)")
    try:
        table.transact(legs, record)
    except LegFailed:
        return False  # another sweep was faster, a person has started a run, or the audit was deleted
    messages.dispatch(*sent)
    return bool(sent)


def end_lost(run: SweepRun) -> None:
    """Ends the runs that have no report after three hours, so that their audits can run again."""
    for watch in run.entries(keys.AUDIT_WATCH_PKS, before=clock.timestamp()):
        with run.isolating(watch):
            run_id, project_id = RunId.stored(watch["runId"]), ProjectId.stored(watch["projectId"])
            with suppress(LegFailed):  # it has ended, or its audit was deleted at the same time
                run.finished += _end(project_id, watch["auditId"], run_id, Key(watch["pk"], watch["sk"]))


def _end(project_id: ProjectId, audit_id: str, run_id: RunId, watch: Key) -> bool:
    location = project_id.location
    run, audit = table.batch_get([keys.audit_run(*location, audit_id, run_id.local), keys.audit(*location, audit_id)])
    if run is None or run["status"] != "pending":
        table.delete(Delete(watch), Unrecorded.PROGRESS)
        return False
    changed = {"status": "failed", "finishedAt": clock.timestamp(), "reason": to_map(_LOST)}
    stored = RunItem.from_item(run)
    legs: dict[str, Leg] = {
        "run": Update(stored.key, set_expression(changed), "#status = :open", {**changed, "open": "pending"}),
        "watch": Delete(watch),
    }
    if audit is not None and audit.get("activeRunId") == run_id:
        legs["audit"] = Update(
            keys.audit(*location, audit_id), "REMOVE #activeRunId", "#activeRunId = :run", {"run": run_id}
        )
    before, after = {"status": "pending"}, {"status": "failed", "reason": _LOST.code, "runId": run_id}
    table.transact(legs, Recorded(Action.AUDIT_FAIL, project_id.organization_id, audit_id, stored.url, before, after))
    return True

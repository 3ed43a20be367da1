"""Reads of the runs of an audit, and of their reports. They are kept when the audit is deleted."""

from collections.abc import Mapping
from typing import Any

from controlplane.audits.items import ReportItem, RunItem, UnknownRun
from controlplane.platform.core import clock
from controlplane.platform.core.ids import ProjectId, RunId
from controlplane.platform.table import keys
from controlplane.platform.table.table import QueryPage, table


def list_runs(project_id: ProjectId, audit_id: str, limit: int, after: str | None) -> QueryPage[RunItem]:
    """Returns one page of the audit's runs, newest first."""
    organization_id, local = project_id.location
    pk, prefix = keys.organization_pk(organization_id), keys.audit_run_prefix(local, audit_id)
    page = table.query(pk, prefix=prefix, newest_first=True, limit=limit, after=after)
    return QueryPage([RunItem.from_item(item) for item in page.items if not _is_expired(item)], page.next_sk)


def find_run(project_id: ProjectId, audit_id: str, run_id: RunId) -> RunItem | None:
    """Returns the run, with a consistent read, or None."""
    return table.find(keys.audit_run(*project_id.location, audit_id, run_id.local), RunItem.from_item)


def get_report(project_id: ProjectId, audit_id: str, run_id: RunId) -> tuple[RunItem, ReportItem]:
    """Returns the run and its report, which is empty until the run is completed. Consistent. Raises UnknownRun."""
    parts = (*project_id.location, audit_id, run_id.local)
    run, report = table.batch_get([keys.audit_run(*parts), keys.audit_report(*parts)])
    if run is None or run["runId"] != run_id or _is_expired(run):
        raise UnknownRun
    empty = ReportItem(run_id=run_id, audit_id=audit_id, project_id=project_id)
    return RunItem.from_item(run), ReportItem.from_item(report) if report else empty


def _is_expired(item: Mapping[str, Any]) -> bool:
    """Returns whether the table hasn't deleted the item yet, although its time is up."""
    return "expiresAt" in item and item["expiresAt"] <= clock.now()

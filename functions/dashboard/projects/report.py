"""Pages about a project to hand on: its report over a period, and the table for its privacy page.

A report reads bounded parts of the lists, in three round trips, and says what it leaves out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from itertools import batched
from typing import Any, NamedTuple

from fastapi import Response

from controlplane.findings import inbox, privacy_table, vendors
from controlplane.findings.inbox import InboxPage
from controlplane.findings.items import MOST_FORMER, InboxItem, StatusChange
from controlplane.findings.vendors import VendorItem
from controlplane.organizations import members
from controlplane.organizations.store import MemberItem
from controlplane.platform.core import clock, ids
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.settings import settings
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.table import keys
from controlplane.platform.table.parallel import read_all, read_both
from controlplane.platform.table.table import QueryPage
from controlplane.projects import store as projects
from controlplane.scans import reads
from controlplane.scans.items import ScanItem
from dashboard.findings.history import FORMER_MEMBER
from dashboard.forms import find_day
from dashboard.parameters import MemberSees, ProjectSlug
from dashboard.projects.pages import project_page, read_slug

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# Of the organization's lists, a report reads this many entries, and of the project's findings the details of so many.
MOST_READ, MOST_DETAILED = 1_000, 300
# The rows of each of its lists.
MOST_SHOWN = 100
_MEMBERS, _VENDORS, _BATCH = 100, 500, 100
_DEFAULT_DAYS = 30


class Period(NamedTuple):
    """The days of a report, by their starts in UTC, both included."""

    since: datetime
    until: datetime

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> "Period":
        """Returns the period of the form: by default the last 30 days. A date that can't be read is ignored."""
        today = datetime.combine(datetime.fromtimestamp(clock.now(), UTC), time(), UTC)
        until = min(find_day(parameters.get("until", "")) or today, today)
        since = find_day(parameters.get("since", "")) or until - timedelta(days=_DEFAULT_DAYS - 1)
        return cls(min(since, until), until)

    @property
    def start(self) -> str:
        return clock.timestamp(self.since.timestamp())

    @property
    def end_seconds(self) -> float:
        """Returns the first second after the period."""
        return (self.until + timedelta(days=1)).timestamp()

    def includes(self, at: str) -> bool:
        return self.start <= at < clock.timestamp(self.end_seconds)


class Event(NamedTuple):
    """A change of a finding's status in the period. who: the person's name, or None if no person changed it.

    kind: opened (or opened again), fixed, or decided.
    """

    kind: str
    item: InboxItem
    change: StatusChange
    who: str | None
    is_again: bool


class _Read(NamedTuple):
    """The parts of the organization's lists that a report reads."""

    changed: InboxPage
    open: InboxPage
    scans: QueryPage[ScanItem]
    roster: QueryPage[MemberItem]


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/report")
async def show_project_report(session: MemberSees, project_slug: ProjectSlug) -> Response:
    """Shows what happened in the project in a period, on a page that can be printed."""
    organization_id, period = session.organization.organization_id, Period.read(session.parameters)
    (project_id, _), read = read_both(
        lambda: projects.resolve_slug(organization_id, read_slug(project_slug)),
        lambda: _read_lists(organization_id, period),
    )
    changed = [item for item in read.changed.items if item.project_id == project_id]
    batches = [*batched(changed[:MOST_DETAILED], _BATCH, strict=False)]
    project, listed, *found = read_all(
        lambda: projects.get_project(project_id),
        lambda: vendors.list_vendors(project_id, _VENDORS, None),
        *(lambda batch=batch: inbox.find_items(it.item_id for it in batch) for batch in batches),
    )
    detailed = [item for batch in found for item in batch.values()]
    content = {
        **_findings(detailed, [it for it in read.open.items if it.project_id == project_id], period, read.roster),
        **_scans(read.scans, project_id, period),
        **_vendors(listed, period, read.roster),
        "left_out": [*_left_out(read, listed, changed, detailed, period)],
    }
    return project_page(
        "project_report",
        session,
        project_slug,
        project,
        below="/report",
        period=period,
        printed_at=clock.timestamp(),
        kept_days=settings.resolved_item_retention_days,
        most=MOST_SHOWN,
        **content,
    )


@router.get("/organizations/{organizationSlug}/projects/{projectSlug}/privacy-table")
async def show_privacy_table(session: MemberSees, project_slug: ProjectSlug) -> Response:
    """Shows the project's vendors and cookies as a table to copy into its privacy page."""
    project_id, _ = projects.resolve_slug(session.organization.organization_id, read_slug(project_slug))
    project, found = read_both(lambda: projects.get_project(project_id), lambda: privacy_table.read_table(project_id))
    return project_page(
        "privacy_table",
        session,
        project_slug,
        project,
        below="/privacy-table",
        table=found,
        html=privacy_table.to_html(found.listed),
        markdown=privacy_table.to_markdown(found.listed),
    )


def _read_lists(organization_id: str, period: Period) -> _Read:
    # The position of the first scan after the period.
    after = f"{keys.SCAN_PREFIX}{ids.local_at(period.end_seconds)}"
    return _Read(
        *read_all(
            lambda: inbox.read_positions(organization_id, None, MOST_READ, None, period.start),
            lambda: inbox.read_positions(organization_id, "open", MOST_READ, None),
            lambda: reads.list_scans(organization_id, MOST_READ, after),
            lambda: members.list_members(organization_id, _MEMBERS, None),
        )
    )


def _findings(
    detailed: Iterable[InboxItem], still_open: Sequence[InboxItem], period: Period, roster: QueryPage[MemberItem]
) -> dict[str, Any]:
    """Returns the events of the period by kind, newest first, and the findings that are open now."""
    events = [event for item in detailed for event in _events_of(item, period, roster)]
    events.sort(key=lambda event: event.change.at, reverse=True)
    return {
        "events": {kind: [it for it in events if it.kind == kind] for kind in ("opened", "fixed", "decided")},
        "open_items": sorted(still_open, key=lambda item: (item.priority or "P4", item.title)),
        "open_counts": Counter(item.priority or "Without a priority" for item in still_open),
    }


def _events_of(item: InboxItem, period: Period, roster: QueryPage[MemberItem]) -> Iterator[Event]:
    for position, change in enumerate(item.history):
        if not period.includes(change.at):
            continue
        kind = {"open": "opened", "resolved": "fixed"}.get(change.status, "decided")
        is_again = position > 0 or len(item.history) > MOST_FORMER
        yield Event(kind, item, change, _name_of(change.by, roster), kind == "opened" and is_again)


def _name_of(user_id: str | None, roster: QueryPage[MemberItem]) -> str | None:
    if user_id is None:
        return None
    unlisted = FORMER_MEMBER if roster.next_sk is None else "A member"
    return next((member.name for member in roster.items if member.user_id == user_id), unlisted)


def _scans(listed: QueryPage[ScanItem], project_id: ProjectId, period: Period) -> dict[str, Any]:
    """Returns the project's scans in the period, newest first, and each folder's latest one of a branch."""
    scans = [it for it in listed.items if it.project_id == project_id and period.includes(it.created_at)]
    latest: dict[tuple[str, str | None], ScanItem] = {}
    for scan in scans:
        if scan.status == "completed" and scan.cause.pull_request_number is None:
            latest.setdefault((scan.repository_id, scan.root_directory), scan)
    return {"scans": scans, "coverage": [*latest.values()]}


def _vendors(listed: QueryPage[VendorItem], period: Period, roster: QueryPage[MemberItem]) -> dict[str, Any]:
    shown = [vendor for vendor in listed.items if vendor.is_configured]
    return {
        "vendors": sorted(shown, key=lambda it: (it.name or it.vendor_id).casefold()),
        "deciders": {it.vendor_id: _name_of(it.decided_by, roster) for it in shown},
        "is_recent": lambda at: at is not None and period.includes(at),
    }


def _left_out(
    read: _Read,
    listed: QueryPage[VendorItem],
    changed: Sequence[InboxItem],
    detailed: Iterable[InboxItem],
    period: Period,
) -> Iterator[str]:
    """Yields what the report doesn't contain because of its limits."""
    if read.changed.next_position is not None or len(changed) > MOST_DETAILED:
        yield "Findings that changed earlier in the period: there are too many. Choose a shorter period."
    if any(len(item.history) > MOST_FORMER and item.history[0].at >= period.start for item in detailed):
        yield f"Earlier changes of some findings: only the latest {MOST_FORMER + 1} statuses of each are kept."
    if read.open.next_position is not None:
        yield "Some open findings: the organization has more than a report reads."
    if read.scans.next_sk is not None and read.scans.items[-1].created_at >= period.start:
        yield "Earlier scans of the period: there are too many. Choose a shorter period."
    if listed.next_sk is not None:
        yield "Some vendors: the project has more than a report reads."

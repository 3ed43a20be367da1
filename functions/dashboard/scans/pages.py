"""The pages of scans: their list, starting and canceling one, its progress and report, unlocking it, and downloads."""

import json
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

from fastapi import Query, Response

from controlplane.access.web_session import WebSession
from controlplane.code_host import repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.findings.items import InboxItem
from controlplane.platform.core import clock
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.ids import RepositoryId, ScanId, ScanRequestId
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from controlplane.platform.table.parallel import read_both
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from controlplane.scans import findings, reads
from controlplane.scans.findings import PublishedFinding
from controlplane.scans.items import STATUSES, RequestItem, ScanItem, UnknownScan
from controlplane.scans.reads import Inventory
from dashboard.code_host.forms import list_choices
from dashboard.findings.highlighting import highlight
from dashboard.pages import download, page, redirect_within
from dashboard.parameters import MemberSees, MemberSubmits, OwnerSees, OwnerSubmits, ScanPath
from dashboard.scans.latest import TREND_SCANS, trend_of

router = ControlRouter(tags=["Pages"], include_in_schema=False)

FINDINGS_PER_PAGE = 50
SCANS_PER_PAGE = 25
_PROJECTS = 100
# A scan keeps at most 500.
_MOST_FINDINGS = 10_000
# A page to print has at most this many findings: some 150 pages of paper.
_MOST_REPORTED = 300
_DONE = {
    "started": "The scan is requested.",
    "canceled": "The scan is canceled.",
    "unlocked": "All findings of this report are unlocked.",
    "already": "The findings were unlocked before. Nothing was charged.",
}


# Once a scan has ended, its page doesn't confirm its start anymore.
_DONE_LATER = {code: text for code, text in _DONE.items() if code != "started"}


# How many findings the previous pages showed.
AfterFinding = Annotated[int, Query(ge=0, le=10_000)]


class Choice(NamedTuple):
    """A repository and the linked project that it can be scanned for."""

    repository: RepositoryItem
    project: ProjectItem
    branch: str | None

    @property
    def value(self) -> str:
        return f"{self.repository.repository_id} {self.project.project_id}"


class Report(NamedTuple):
    """A scan with its readable inventory and findings.

    project: None if it was deleted. fixed: inbox items of findings that the previous scan had.
    """

    scan: ScanItem
    inventory: Inventory | None
    found: list[PublishedFinding]
    project: ProjectItem | None
    fixed: list[InboxItem]


@router.get("/organizations/{organizationSlug}/scans")
async def show_scans(session: MemberSees) -> Response:
    """Lists the organization's scans, newest first, with a form that starts one."""
    return _scans(session)


@router.post("/organizations/{organizationSlug}/scans")
async def begin_scan(session: MemberSubmits) -> Response:
    """Starts a scan, and redirects to its page."""
    from dashboard.scans import changes  # noqa: PLC0415 (60 ms that only changes and downloads need)

    try:
        work_id = await changes.start(session.organization.organization_id, session.form, session.user_id)
    except changes.NOT_STARTED as failure:
        return _scans(session, failure)
    return redirect_within(session.organization, f"/scans/{work_id}?done=started")


@router.get("/organizations/{organizationSlug}/scans/{scanId}")
async def show_scan(session: MemberSees, scan_id: ScanPath, after: AfterFinding = 0) -> Response:
    """Shows a scan: its progress, readable findings, coverage, and vendors. Also shows a request for a scan."""
    request_id = ScanRequestId.parse(scan_id)
    if request_id is not None:
        return _request(session, request_id)
    return _scan(session, scan_id, after)


@router.post("/organizations/{organizationSlug}/scans/{scanId}/cancel")
async def stop_scan(session: MemberSubmits, scan_id: ScanPath) -> Response:
    """Cancels a scan that is queued or running, and redirects to its page."""
    from dashboard.scans import changes  # noqa: PLC0415 (see begin_scan)

    try:
        changes.cancel(session.own(ScanId, scan_id, UnknownScan))
    except changes.NOT_CANCELED as failure:
        return _scan(session, scan_id, failure=failure)
    return redirect_within(session.organization, f"/scans/{scan_id}?done=canceled")


@router.get("/organizations/{organizationSlug}/scans/{scanId}/unlock")
async def show_unlock(session: OwnerSees, scan_id: ScanPath) -> Response:
    """Shows an owner what unlocking the findings costs."""
    return _unlock(session, scan_id)


@router.post("/organizations/{organizationSlug}/scans/{scanId}/unlock")
async def unlock_findings(session: OwnerSubmits, scan_id: ScanPath) -> Response:
    """Unlocks the findings for credits, and redirects to the report."""
    from dashboard.scans import changes  # noqa: PLC0415 (see begin_scan)

    try:
        charged = changes.unlock(session.own(ScanId, scan_id, UnknownScan), session.user_id)
    except changes.NOT_UNLOCKED as failure:
        return _unlock(session, scan_id, failure)
    return redirect_within(session.organization, f"/scans/{scan_id}?done={'unlocked' if charged else 'already'}")


@router.get("/organizations/{organizationSlug}/scans/{scanId}/report")
async def show_scan_report(session: MemberSees, scan_id: ScanPath) -> Response:
    """Shows a scan with all readable findings, up to a limit, on a page that can be printed."""
    report = _get_report(session, scan_id, 0, _MOST_REPORTED)
    return page(
        "scan_report",
        session,
        **report._asdict(),
        is_cut=len(report.found) < report.scan.visible_count,
        printed_at=clock.timestamp(),
        highlight=highlight,
    )


@router.get("/organizations/{organizationSlug}/scans/{scanId}/findings.sarif")
async def download_sarif(session: MemberSees, scan_id: ScanPath) -> Response:
    """Returns the readable findings as SARIF 2.1.0."""
    from dashboard.scans import changes  # noqa: PLC0415 (see begin_scan)

    report = _get_report(session, scan_id, 0, _MOST_FINDINGS)
    log = changes.to_sarif(report.scan, report.found)
    # The gateway passes on other media types than application/json only in Base64.
    return download(f"{_name_of(report.scan)}.sarif", json.dumps(log, ensure_ascii=False), "application/json")


@router.get("/organizations/{organizationSlug}/scans/{scanId}/findings.csv")
async def download_csv(session: MemberSees, scan_id: ScanPath) -> Response:
    """Returns the readable findings as CSV."""
    from dashboard.scans import changes  # noqa: PLC0415 (see begin_scan)

    report = _get_report(session, scan_id, 0, _MOST_FINDINGS)
    text = changes.to_csv(report.scan, report.found)
    return download(f"{_name_of(report.scan)}.csv", text, "text/csv; charset=utf-8")


def _name_of(scan: ScanItem) -> str:
    return f"{scan.repository_name}-{scan.head_commit_sha[:12]}"


def _scans(session: WebSession, failure: ApiError | None = None) -> Response:
    organization_id, given = session.organization.organization_id, session.parameters
    # An unknown repository or status is ignored.
    parsed = RepositoryId.parse(given.get("repository", ""))
    repository_id = parsed if parsed is not None and parsed.organization_id == organization_id else None
    status = next((it for it in STATUSES if it == given.get("status")), None)
    codec = CursorCodec(given.get("after"), "showScans", organization_id, repository_id or "", status or "")

    def list_completed() -> list[ScanItem]:
        if codec.after is not None:
            return []
        return reads.list_scans(organization_id, TREND_SCANS, None, repository_id, "completed").items

    (listed, completed), (connected, own) = read_both(
        lambda: read_both(
            lambda: reads.list_scans(organization_id, SCANS_PER_PAGE, codec.after, repository_id, status),
            list_completed,
        ),
        lambda: read_both(
            lambda: list_choices(organization_id),
            lambda: projects.list_projects(organization_id, _PROJECTS, None),
        ),
    )
    named: dict[str, ProjectItem] = {project.project_id: project for project in own.items}
    if own.next_sk is not None:
        named |= repositories.find_linked_projects(connected)
    filters = {name: it for name, it in (("repository", repository_id), ("status", status)) if it}
    details = failure.details if failure and isinstance(failure.details, dict) else {}
    return page(
        "scans",
        session,
        failure,
        scans=listed.items,
        next_cursor=codec.cursor(listed.next_sk),
        is_first=codec.after is None,
        filters=filters,
        query=urlencode(filters),
        statuses=STATUSES,
        projects=named,
        repositories=connected,
        choices=[
            Choice(repository, named[link.project_id], link.production_branch or repository.default_branch)
            for repository in connected
            for link in repository.links
            if link.project_id in named
        ],
        trend=trend_of(completed),
        in_progress=details.get("scanId"),
    )


def _scan(session: WebSession, scan_id: str, after: int = 0, failure: ApiError | None = None) -> Response:
    report = _get_report(session, scan_id, after, FINDINGS_PER_PAGE)
    last = after + len(report.found)
    return page(
        "scan",
        session,
        failure,
        done=_DONE if report.scan.is_open else _DONE_LATER,
        **report._asdict(),
        first=after + 1,
        next_after=last if report.found and last < report.scan.visible_count else None,
        highlight=highlight,
    )


def _get_report(session: WebSession, text: str, after: int, at_most: int) -> Report:
    """Returns a scan with its findings after the first `after`. Raises UnknownScan.

    Takes two round trips: the findings are read together with the scan, as if its first attempt had stored them. The
    inbox items of findings that only the previous scan had are on the first page.
    """
    scan_id = session.own(ScanId, text, UnknownScan)
    ahead, stocked = read_both(
        lambda: findings.read_ahead(scan_id, after, at_most),
        lambda: reads.find_with_inventory(scan_id),
    )
    if stocked is None:
        raise UnknownScan
    scan, inventory = stocked
    found = findings.confirm(scan, ahead, findings.readable_count(scan, after, at_most), after)
    fixed = scan.comparison.fixed if scan.comparison is not None and after == 0 else ()
    fingerprints = [finding.fingerprint for finding in found]
    stored, project = read_both(
        lambda: findings.find_items(scan, [*fingerprints, *fixed]), lambda: projects.find_project(scan.project_id)
    )
    return Report(
        scan,
        inventory and inventory.readable(scan),
        findings.publish(found, stored),
        project,
        [stored[fingerprint] for fingerprint in fixed if fingerprint in stored],
    )


def _request(session: WebSession, request_id: ScanRequestId) -> Response:
    """Shows a request for a scan, or leads to its scan as soon as that exists."""
    own = request_id.organization_id == session.organization.organization_id
    request = reads.find_work(request_id) if own else None
    if not isinstance(request, RequestItem):
        raise UnknownScan
    if request.scan_id is not None:
        return redirect_within(session.organization, f"/scans/{request.scan_id}?done=started")
    return page("scan_request", session, done=_DONE, request=request)


def _unlock(session: WebSession, scan_id: str, failure: ApiError | None = None) -> Response:
    from dashboard.scans import changes  # noqa: PLC0415 (see begin_scan)

    return page("scan_unlock", session, failure, **changes.get_price(session.own(ScanId, scan_id, UnknownScan)))

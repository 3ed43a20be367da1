"""The pages of scans: their list, starting one, its progress and report, unlocking it, and downloads."""

import json
from collections.abc import Mapping
from typing import Annotated

from fastapi import Query, Response

from controlplane.access.web_session import WebSession
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.ids import ScanRequestId
from controlplane.platform.http.app import ControlRouter
from controlplane.scans.items import STATUSES
from dashboard.highlighting import highlight
from dashboard.organizations import get_organization
from dashboard.page_parameters import AfterFinding, OrganizationSlug, ScanPath, SignedIn, Submits
from dashboard.pages import address, download, page, redirect
from dashboard.scans import Filters, get_request, get_scan, get_scans

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_DONE = {
    "started": "The scan is requested.",
    "unlocked": "All findings of this report are unlocked.",
    "already": "The findings were unlocked before. Nothing was charged.",
}

Done = Annotated[str | None, Query(max_length=40)]
Filter = Annotated[str | None, Query(max_length=100)]
Position = Annotated[str | None, Query(max_length=1_024)]


@router.get("/organizations/{organizationSlug}/scans", operation_id="showScans")
async def show_scans(
    session: SignedIn,
    organization_slug: OrganizationSlug,
    repository: Filter = None,
    status: Filter = None,
    after: Position = None,
) -> Response:
    """Lists the organization's scans, newest first, with a form that starts one."""
    return _scans(session, organization_slug, repository, status, after)


@router.post("/organizations/{organizationSlug}/scans", operation_id="beginScan")
async def begin_scan(session: Submits, organization_slug: OrganizationSlug) -> Response:
    """Starts a scan, and redirects to its page."""
    from dashboard import scan_changes  # noqa: PLC0415 (60 ms that only changes and downloads need)

    organization = get_organization(organization_slug, session.account)
    try:
        work_id = await scan_changes.start(organization, session.form, session.user_id)
    except scan_changes.NOT_STARTED as failure:
        return _scans(session, organization_slug, failure=failure, entered=session.form)
    return redirect(f"{_address(organization_slug, work_id)}?done=started")


@router.get("/organizations/{organizationSlug}/scans/{scanId}", operation_id="showScan")
async def show_scan(
    session: SignedIn,
    organization_slug: OrganizationSlug,
    scan_id: ScanPath,
    after: AfterFinding = 0,
    done: Done = None,
) -> Response:
    """Shows a scan: its progress, readable findings, coverage, and vendors. Also shows a request for a scan."""
    request_id = ScanRequestId.parse(scan_id)
    if request_id is not None:
        requested = get_request(organization_slug, request_id, session.account)
        return page("scan_request", session, done=_DONE.get(done or ""), **requested._asdict())
    shown = get_scan(organization_slug, scan_id, session.account, after)
    return page(
        "scan",
        session,
        done=_DONE.get(done or ""),
        **shown._asdict(),
        next_after=shown.next_after,
        highlight=highlight,
    )


@router.get("/organizations/{organizationSlug}/scans/{scanId}/unlock", operation_id="showUnlock")
async def show_unlock(session: SignedIn, organization_slug: OrganizationSlug, scan_id: ScanPath) -> Response:
    """Shows an owner what unlocking the findings costs."""
    return _unlock(session, organization_slug, scan_id)


@router.post("/organizations/{organizationSlug}/scans/{scanId}/unlock", operation_id="unlockFindings")
async def unlock_findings(session: Submits, organization_slug: OrganizationSlug, scan_id: ScanPath) -> Response:
    """Unlocks the findings for credits, and redirects to the report."""
    from dashboard import scan_changes  # noqa: PLC0415 (see begin_scan)

    locked = scan_changes.get_locked(organization_slug, scan_id, session.account)
    try:
        charged = scan_changes.unlock(locked, session.user_id)
    except scan_changes.NOT_UNLOCKED as failure:
        return _unlock(session, organization_slug, scan_id, failure)
    return redirect(f"{_address(organization_slug, scan_id)}?done={'unlocked' if charged else 'already'}")


@router.get("/organizations/{organizationSlug}/scans/{scanId}/findings.sarif", operation_id="downloadSarif")
async def download_sarif(session: SignedIn, organization_slug: OrganizationSlug, scan_id: ScanPath) -> Response:
    """Returns the readable findings as SARIF 2.1.0."""
    from dashboard import scan_changes  # noqa: PLC0415 (see begin_scan)

    name, log = scan_changes.get_sarif(organization_slug, scan_id, session.account)
    # The gateway passes on other media types than application/json only in Base64.
    return download(f"{name}.sarif", json.dumps(log, ensure_ascii=False), "application/json")


@router.get("/organizations/{organizationSlug}/scans/{scanId}/findings.csv", operation_id="downloadCsv")
async def download_csv(session: SignedIn, organization_slug: OrganizationSlug, scan_id: ScanPath) -> Response:
    """Returns the readable findings as CSV."""
    from dashboard import scan_changes  # noqa: PLC0415 (see begin_scan)

    name, text = scan_changes.get_csv(organization_slug, scan_id, session.account)
    return download(f"{name}.csv", text, "text/csv; charset=utf-8")


def _address(organization_slug: str, scan_id: str) -> str:
    return address(f"/organizations/{organization_slug}/scans/{scan_id}")


def _scans(
    session: WebSession,
    organization_slug: str,
    repository: str | None = None,
    status: str | None = None,
    after: str | None = None,
    *,
    failure: ApiError | None = None,
    entered: Mapping[str, str] | None = None,
) -> Response:
    organization = get_organization(organization_slug, session.account)
    filters = Filters.of(organization.organization_id, repository, status)
    shown = get_scans(organization, filters, after)
    return page(
        "scans",
        session,
        failure=failure,
        **shown._asdict(),
        filters=filters,
        statuses=STATUSES,
        is_first=after is None,
        chosen=(entered or {}).get("subject", ""),
        in_progress=(failure.details or {}).get("scanId") if failure and isinstance(failure.details, dict) else None,
    )


def _unlock(session: WebSession, organization_slug: str, scan_id: str, failure: ApiError | None = None) -> Response:
    from dashboard import scan_changes  # noqa: PLC0415 (see begin_scan)

    locked = scan_changes.get_locked(organization_slug, scan_id, session.account)
    return page(
        "scan_unlock",
        session,
        failure=failure,
        **locked._asdict(),
        price=locked.price,
        is_covered=locked.is_covered,
        needs_top_up=locked.needs_top_up,
    )

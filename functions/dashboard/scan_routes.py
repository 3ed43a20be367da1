"""The page of a scan."""

from fastapi import Response

from controlplane.http.app import ControlRouter
from dashboard.page_parameters import AfterFinding, OrganizationSlug, ScanPath, SignedIn
from dashboard.pages import page
from dashboard.scans import get_scan

router = ControlRouter(tags=["Pages"], include_in_schema=False)


@router.get("/organizations/{organizationSlug}/scans/{scanId}", operation_id="showScan")
async def show_scan(
    session: SignedIn, organization_slug: OrganizationSlug, scan_id: ScanPath, after: AfterFinding = 0
) -> Response:
    """Shows a scan: its progress, readable findings, coverage, and vendors."""
    shown = get_scan(organization_slug, scan_id, session.user_id, after)
    return page("scan", session, **shown._asdict(), next_after=shown.next_after)

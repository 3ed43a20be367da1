"""Routes of `code_audit` for a scan's findings: listed, as SARIF, and compared with those of another scan."""

import json
from typing import Annotated

from fastapi import Query, Response

from code_audit.fields import SCAN_ID, ReadsFindings, expiry_of
from code_audit.finding_schemas import Comparison, Issue, ScanIssues
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.route import refuses
from controlplane.scans import diff as scan_diff
from controlplane.scans import findings

router = ControlRouter(tags=["Code audit"])

Base = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=100,
        description="The scan to compare with, of the same repository.",
        examples=[SCAN_ID],
    ),
]


@router.get("/v1/code-audit/scans/{scanId}/issues", summary="List the findings of a scan")
@refuses(findings.ScanNotCompleted, findings.ScanWithoutResult, findings.UnlockRequired)
async def list_scan_issues(access: ReadsFindings) -> ScanIssues:
    """Lists the findings of a scan, most urgent first, in a single response. A scan keeps up to 500 findings.

    Until the scan is completed, the response is the error `SCAN_IN_PROGRESS`: poll `GET /v1/code-audit/scans/{scanId}`,
    then list the findings. For a failed or canceled scan it is `CONFLICT`. An empty list therefore means that the scan
    found nothing, or that its findings have expired.

    A free preview returns up to three findings: those that an earlier scan of the repository returned and that are
    still there, then the most urgent. So fixing one shows another; dismissing one doesn't. `lockedCount` is the number
    of the others, and `unlockCredits` the price of unlocking them. A scan with the access `locked` returns the error
    `UNLOCK_REQUIRED`. When a later scan of the same project is completed, the findings of this scan get an expiration
    time, `findingsExpireAt`. After that time, `issues` is empty and `expiredCount` is the number of expired findings.
    """
    ahead = access.enter_while(findings.read_ahead)
    scan = access.resource
    found = findings.list_visible_issues(scan, ahead)
    expired = scan.findings_expired
    return ScanIssues(
        issues=[Issue.of(scan, finding, item) for finding, item in found],
        locked_count=0 if expired else scan.locked_count,
        unlock_credits=None if expired else scan.unlock_credits,
        expired_count=(scan.issue_count or 0) if expired else 0,
        findings_expire_at=expiry_of(scan),
    )


@router.get("/v1/code-audit/scans/{scanId}/sarif", summary="Get the findings of a scan as SARIF")
@refuses(findings.ScanNotCompleted, findings.ScanWithoutResult, findings.UnlockRequired)
async def get_scan_sarif(access: ReadsFindings) -> Response:
    """Returns the readable findings of a completed scan in SARIF 2.1.0, without the envelope: save it as a file.

    GitHub's code scanning accepts it as an upload, and editors show it. Findings that were accepted or dismissed in the
    inbox, or silenced in the repository, are suppressed. If the scan isn't completed or unlocked, the errors are those
    of listing its findings.
    """
    from controlplane.scans import sarif  # noqa: PLC0415 (other requests don't need it)

    ahead = access.enter_while(findings.read_ahead)
    log = sarif.to_sarif(access.resource, findings.list_visible_issues(access.resource, ahead))
    return Response(json.dumps(log, ensure_ascii=False), media_type="application/json")


@router.get("/v1/code-audit/scans/{scanId}/diff", summary="Compare a scan with another one")
@refuses(
    findings.ScanNotCompleted,
    findings.ScanWithoutResult,
    findings.UnlockRequired,
    scan_diff.NoBase,
    scan_diff.FindingsExpired,
)
async def compare_scans(access: ReadsFindings, base: Base = None) -> Comparison:
    """Returns the findings that a completed scan has and the base doesn't, and the other way round.

    Without `base`, the scan is compared with the last completed scan of the production branch before it. If there was
    none, all findings are new. The lists contain what can be read in the two scans; the counts include locked findings.
    """
    ahead = access.enter_while(lambda scan_id: scan_diff.read_ahead(scan_id, base))
    found = scan_diff.compare(access.resource, base, ahead)
    older = found.base or found.scan
    return Comparison(
        base_scan_id=found.base.scan_id if found.base else None,
        new=[Issue.of(found.scan, finding, item) for finding, item in found.new],
        fixed=[Issue.of(older, finding, item) for finding, item in found.fixed],
        new_count=found.new_count,
        fixed_count=found.fixed_count,
        unchanged_count=found.unchanged_count,
    )

"""Routes of `code_audit` for pipelines: a scan's findings as SARIF, and compared with those of another scan."""

import json
from typing import Annotated

from fastapi import Query, Response

from code_audit.finding_schemas import SCAN_ID, Comparison, Issue
from code_audit.routes import ReadsScan
from controlplane.http.app import ControlRouter
from controlplane.http.responses import refuses
from controlplane.rules import scan_diff, scans

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


@router.get(
    "/v1/code-audit/scans/{scanId}/sarif", operation_id="getScanSarif", summary="Get the findings of a scan as SARIF"
)
@refuses(scans.ScanNotCompleted, scans.ScanWithoutResult, scans.UnlockRequired)
async def get_scan_sarif(access: ReadsScan) -> Response:
    """Returns the readable findings of a completed scan in SARIF 2.1.0, without the envelope: save it as a file.

    GitHub's code scanning accepts it as an upload, and editors show it. Findings that were accepted or dismissed in the
    inbox are suppressed. If the scan isn't completed or unlocked, the errors are those of listing its findings.
    """
    from controlplane.rules import sarif  # noqa: PLC0415 (other requests don't need it)

    log = sarif.to_sarif(access.resource, scans.list_visible_issues(access.resource))
    return Response(json.dumps(log, ensure_ascii=False), media_type="application/json")


@router.get(
    "/v1/code-audit/scans/{scanId}/diff", operation_id="compareScans", summary="Compare a scan with another one"
)
@refuses(
    scans.ScanNotCompleted, scans.ScanWithoutResult, scans.UnlockRequired, scan_diff.NoBase, scan_diff.FindingsExpired
)
async def compare_scans(access: ReadsScan, base: Base = None) -> Comparison:
    """Returns the findings that a completed scan has and the base doesn't, and the other way round.

    Without `base`, the scan is compared with the last completed scan of the production branch before it. If there was
    none, all findings are new. The lists contain what can be read in the two scans; the counts include locked findings.
    """
    found = scan_diff.compare(access.resource, base)
    older = found.base or found.scan
    return Comparison(
        base_scan_id=found.base.scan_id if found.base else None,
        new=[Issue.of(found.scan, finding, item) for finding, item in found.new],
        fixed=[Issue.of(older, finding, item) for finding, item in found.fixed],
        new_count=found.new_count,
        fixed_count=found.fixed_count,
        unchanged_count=found.unchanged_count,
    )

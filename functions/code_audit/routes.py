"""Routes of `code_audit`: connected repositories, and starting, listing, canceling, and unlocking scans."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query

from code_audit.fields import REPOSITORY_ID, SCAN
from code_audit.preferences import APPLIED, Prefer, applied, read_wait
from code_audit.repository_schemas import Repository
from code_audit.scan_schemas import Scan
from code_audit.start_schemas import ScanCreate, ScanNotStarted, ScanStarted, ScanStarting, Unlocked
from controlplane.access.access import Access, Requires, Resource
from controlplane.access.idempotency import IdempotencyKey, idempotent
from controlplane.code_host import repositories
from controlplane.platform.core import acting
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import ScanRequestId
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.fields import Reason
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.table import keys, parallel
from controlplane.platform.table.table import Leg
from controlplane.projects import store as projects
from controlplane.scans import failures, reads, requests, unlocks
from controlplane.scans.items import RequestItem, ScanItem, Status
from controlplane.scans.reads import RETRY_AFTER_SECONDS, Outcome
from controlplane.scans.requests import ScanInProgress
from controlplane.scans.unlocks import InsufficientCredits, NothingToUnlock

router = ControlRouter(tags=["Code audit"])

REQUEST = Resource("preparationId", ScanRequestId, keys.scan_request, RequestItem.from_item)

ListsOfCodeAudit = Annotated[Access[None], Requires("code-audit.read", organization="query")]
StartsScan = Annotated[Access[None], Requires("code-audit.write", organization="query", user_token=True, late=True)]
CancelsScan = Annotated[Access[ScanItem], Requires("code-audit.write", resource=SCAN, user_token=True)]
UnlocksScan = Annotated[Access[ScanItem], Requires("code-audit.write", role="owner", resource=SCAN, user_token=True)]
ReadsRequest = Annotated[
    Access[RequestItem], Requires("code-audit.read", or_scope="code-audit.write", resource=REQUEST)
]

Start = ScanStarted | ScanStarting | ScanNotStarted

RepositoryFilter = Annotated[
    str | None,
    Query(
        alias="repositoryId",
        min_length=1,
        max_length=100,
        description="Returns only scans of this repository.",
        examples=[REPOSITORY_ID],
    ),
]
StatusFilter = Annotated[
    Status | None, Query(description="Returns only scans with this status.", examples=["completed"])
]
RequestedRepository = Annotated[
    str,
    Query(
        alias="repositoryId",
        min_length=1,
        max_length=100,
        description="The `repositoryId` of the scan request.",
        examples=[REPOSITORY_ID],
    ),
]


# Projects read at the same time as the repositories. Those of an organization with more may take another round trip.
_PROJECTS_AHEAD = 50
# If the scan doesn't exist yet, the response says when to poll.
_RETRY_AFTER: dict[str, Any] = {"headers": {"Retry-After": {}}}


@router.get("/v1/code-audit/repositories", summary="List connected repositories")
async def list_repositories(access: ListsOfCodeAudit, limit: Limit = 50, cursor: Cursor = None) -> Page[Repository]:
    """Lists the organization's connected repositories with their linked projects, most recently connected first."""
    codec = CursorCodec(cursor, "listRepositories", access.organization_id)
    organization_id = access.organization_id
    page, newest = parallel.read_both(
        lambda: repositories.list_repositories(organization_id, limit, codec.after),
        lambda: projects.list_projects(organization_id, _PROJECTS_AHEAD, None),
    )
    linked = repositories.find_linked_projects(page.items, newest.items)
    return Page([Repository.of(item, linked) for item in page.items], codec.cursor(page.next_sk))


@router.get("/v1/code-audit/scans", summary="List scans")
async def list_scans(
    access: ListsOfCodeAudit,
    repository_id: RepositoryFilter = None,
    status: StatusFilter = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Scan]:
    """Lists the organization's scans, newest first. Optionally filters by repository, by status, or by both."""
    organization_id = access.organization_id
    codec = CursorCodec(cursor, "listScans", organization_id, repository_id or "", status or "")
    page = reads.list_scans(organization_id, limit, codec.after, repository_id, status)
    return Page([Scan.of(scan) for scan in page.items], codec.cursor(page.next_sk))


@router.post(
    "/v1/code-audit/scans",
    summary="Start a scan",
    status_code=202,
    response_description="The scan, or the scan request if the scan doesn't exist yet.",
    responses={202: {"headers": {**_RETRY_AFTER["headers"], **APPLIED["headers"]}}},
)
@refuses(NotFound, requests.RepositoryNotLinked, ScanInProgress)
async def start_scan(
    access: StartsScan, body: ScanCreate, idempotency_key: IdempotencyKey = None, prefer: Prefer = None
) -> Answer[Start]:
    """Starts a scan of a repository: of the production branch of one of its linked projects.

    The call waits up to 3 seconds for the scan to exist, then returns it. If not, `status` is `starting`: poll `GET
    /v1/code-audit/scan-requests/{preparationId}`. The first scan of a repository is a free preview, and so are the
    later ones unless the plan has full scans. A repository has one scan at a time: the error `SCAN_IN_PROGRESS` has the
    running scan in `details.scanId`, or in `details.preparationId` if that scan doesn't exist yet.

    With `Prefer: wait=20`, the call waits up to 20 seconds until the scan has ended, and returns it as it is then.
    """
    with parallel.reading(lambda: requests.find_repository(body.repository_id)) as find_repository:
        access.enter()
    repository = find_repository()
    if repository is None or repository.organization_id != access.organization_id:
        raise NotFound
    current: Outcome | None = None

    def request(legs: Mapping[str, Leg]) -> Answer[ScanStarting]:
        nonlocal current
        made, current = requests.request_scan(repository, body.project_id or None, access.user_id, legs)
        return Answer(ScanStarting.of(made), headers={"Retry-After": str(RETRY_AFTER_SECONDS)})

    requested = idempotent(access, "startScan", idempotency_key, body, request)
    if acting.is_dry_run() and not _replayed(requested):
        return Answer(requested.content, headers=requested.headers)
    preparation_id, wait_seconds = _preparation_id(requested), read_wait(prefer)
    outcome, is_applied = await reads.wait_for_request(preparation_id, wait_seconds, current)
    # Also stores the outcome after the wait, so that a retry returns the same response.
    answer = idempotent(access, "startScan.answer", idempotency_key, body, lambda _: _answer(outcome))
    waited = applied(wait_seconds, is_applied=is_applied)
    return Answer(answer.content, headers={**answer.headers, **_replayed(requested), **waited})


@router.post("/v1/code-audit/scans/{scanId}/cancel", summary="Cancel a scan")
@refuses(failures.NotCancelable)
async def cancel_scan(access: CancelsScan) -> Scan:
    """Cancels a scan that is queued or running, and returns it with the status `canceled`. Takes no body.

    A repeated call returns the same scan. A canceled scan publishes no findings, and neither uses the repository's free
    preview nor costs credits. The next scan of the repository can start at once. A completed or failed scan can't be
    canceled, nor can a scan whose stage `publish` has begun: the error `CONFLICT` has its status in
    `details.currentStatus`.

    The service cancels scans, too: that of a pull request when it gets a newer commit or is closed. `failure` has the
    reason.
    """
    return Scan.of(failures.cancel_scan(access.resource))


@router.post("/v1/code-audit/scans/{scanId}/unlock", summary="Unlock the findings of a scan")
@refuses(InsufficientCredits, NothingToUnlock)
async def unlock_scan(access: UnlocksScan) -> Unlocked:
    """Unlocks all findings of a scan for the scan's `unlockCredits`. Takes no body.

    Repeated calls charge only once. The other scans of the same commit and folder are unlocked along with it if the
    same rules were used, and such scans that are completed later have full access. Only a completed scan can be
    unlocked, and only until its findings expire.
    """
    unlocked = unlocks.unlock_scan(access.resource, access.user_id)
    return Unlocked(status="unlocked" if unlocked else "already-unlocked")


@router.get("/v1/code-audit/scan-requests/{preparationId}", summary="Get a scan request", responses={200: _RETRY_AFTER})
async def get_scan_request(access: ReadsRequest, repository_id: RequestedRepository) -> Answer[Start]:
    """Returns the state of a scan request: `starting`, `started` with the scan, or `failed` with the reason.

    While it is `starting`, poll again after `Retry-After` seconds. `repositoryId` must match the scan request.
    """
    if access.resource.repository_id != repository_id:
        raise NotFound
    return _answer(reads.find_outcome(access.resource))


def _answer(outcome: Outcome) -> Answer[Start]:
    request, scan = outcome
    if scan is not None:
        return Answer(ScanStarted(status="started", scan=Scan.of(scan)))
    if request.failure is None:
        return Answer(ScanStarting.of(request), headers={"Retry-After": str(RETRY_AFTER_SECONDS)})
    return Answer(
        ScanNotStarted(
            status="failed",
            preparation_id=request.request_id,
            repository_id=request.repository_id,
            error=Reason(code=request.failure.code, message=request.failure.message),
        )
    )


def _preparation_id(answer: Answer[Any]) -> ScanRequestId:
    """Returns the preparation ID of a new response, or of a replayed one, whose content is a dict."""
    content = answer.content
    return ScanRequestId.stored(content["preparationId"] if isinstance(content, dict) else content.preparation_id)


def _replayed(answer: Answer[ScanStarting]) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name == "Idempotency-Replayed"}

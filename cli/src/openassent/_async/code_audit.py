"""Connected repositories, their links to projects, and their scans."""

from collections.abc import Callable
from typing import Any

from openassent._async._pages import AsyncPages
from openassent._async._resource import AsyncResource
from openassent._calls import OMIT, Omit, change, create, get, given, nullable, path
from openassent._clock import monotonic, sleep_async
from openassent.errors import ScanStartFailed, WaitTimedOut
from openassent.models import (
    Comparison,
    DeletedLink,
    DisconnectedRepository,
    LinkedProject,
    Repository,
    Scan,
    ScanDetail,
    ScanIssues,
    ScanNotStarted,
    ScanStart,
    ScanStarted,
    ScanStarting,
    Unlocked,
)
from openassent.values import Priority, ScanStatus, Schedule

_ENDED = {"completed", "failed", "canceled"}
# How often a scan is read while its progress is followed.
_POLL_SECONDS = 2.0
# The longest time that the service waits for the end of a scan.
_LONGEST_WAIT_SECONDS = 20


class AsyncRepositories(AsyncResource):
    """The organization's connected repositories."""

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, organization_id: str | None = None
    ) -> AsyncPages[Repository]:
        """Lists the connected repositories with their linked projects, most recently connected first."""
        query = {"limit": limit, "organizationId": self._organization(organization_id)}
        return AsyncPages(self._core, "/v1/code-audit/repositories", Repository, cursor, query)

    async def disconnect(self, repository_id: str, *, dry_run: bool = False) -> DisconnectedRepository:
        """Disconnects a repository, and deletes its scans, findings, and inbox items."""
        call = change("DELETE", path("/v1/code-audit/repositories/{}", repository_id), dry_run=dry_run)
        return await self._core.result(call, DisconnectedRepository)


class AsyncLinks(AsyncResource):
    """The links of a repository to projects."""

    def list(
        self, repository_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[LinkedProject]:
        """Lists the projects that the repository is linked to, oldest first."""
        url = path("/v1/code-audit/repositories/{}/links", repository_id)
        return AsyncPages(self._core, url, LinkedProject, cursor, {"limit": limit})

    async def create(
        self,
        repository_id: str,
        *,
        project_id: str,
        production_branch: str | None = None,
        root_directory: str | None = None,
        pull_request_scans_enabled: bool | None = None,
        scan_on_push: bool | None = None,
        schedule: Schedule | None = None,
        failure_threshold: Priority | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> LinkedProject:
        """Links a project to the repository, so that it can be scanned for the project.

        production_branch: the branch to scan, by default the repository's default branch.
        root_directory: the folder to scan, by default the whole repository.
        pull_request_scans_enabled, scan_on_push: whether pull requests and pushes are scanned; they aren't by default.
        schedule: how often a scan starts by itself, by default never.
        failure_threshold: a new finding of this priority or a more urgent one fails a pull request's check; `P1` by
            default.
        """
        body = given(
            projectId=project_id,
            productionBranch=production_branch,
            rootDirectory=root_directory,
            pullRequestScansEnabled=pull_request_scans_enabled,
            scanOnPush=scan_on_push,
            schedule=schedule,
            failureThreshold=failure_threshold,
        )
        url = path("/v1/code-audit/repositories/{}/links", repository_id)
        return await self._core.result(create(url, body, idempotency_key, dry_run=dry_run), LinkedProject)

    async def update(
        self,
        repository_id: str,
        project_id: str,
        *,
        production_branch: str | Omit | None = OMIT,
        root_directory: str | Omit | None = OMIT,
        pull_request_scans_enabled: bool | None = None,
        scan_on_push: bool | None = None,
        schedule: Schedule | Omit | None = OMIT,
        failure_threshold: Priority | None = None,
        dry_run: bool = False,
    ) -> LinkedProject:
        """Changes what is scanned for the project, and when. Omitted settings stay as they are.

        production_branch, root_directory, schedule: None means the default branch, the whole repository, and never.
        """
        body = given(
            pullRequestScansEnabled=pull_request_scans_enabled,
            scanOnPush=scan_on_push,
            failureThreshold=failure_threshold,
        ) | nullable(productionBranch=production_branch, rootDirectory=root_directory, schedule=schedule)
        url = path("/v1/code-audit/repositories/{}/links/{}", repository_id, project_id)
        return await self._core.result(change("PATCH", url, body, dry_run=dry_run), LinkedProject)

    async def delete(self, repository_id: str, project_id: str, *, dry_run: bool = False) -> DeletedLink:
        """Unlinks a project from the repository. Its scans and findings are kept."""
        url = path("/v1/code-audit/repositories/{}/links/{}", repository_id, project_id)
        return await self._core.result(change("DELETE", url, dry_run=dry_run), DeletedLink)


class AsyncScans(AsyncResource):
    """Scans of connected repositories."""

    def list(
        self,
        *,
        repository_id: str | None = None,
        status: ScanStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        organization_id: str | None = None,
    ) -> AsyncPages[Scan]:
        """Lists the organization's scans, newest first."""
        query = {
            "repositoryId": repository_id,
            "status": status,
            "limit": limit,
            "organizationId": self._organization(organization_id),
        }
        return AsyncPages(self._core, "/v1/code-audit/scans", Scan, cursor, query)

    async def start(
        self,
        *,
        repository_id: str,
        project_id: str | None = None,
        wait_seconds: int | None = None,
        organization_id: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> ScanStarted | ScanStarting | ScanNotStarted:
        """Starts a scan of a linked project's production branch. Give the result to `wait`.

        project_id: the linked project, by default the first one.
        wait_seconds: waits up to 20 seconds until the scan has ended.

        Raises ScanInProgress if the repository is being scanned: `details` has the `scanId`, or the `preparationId` of
        a scan that doesn't exist yet.
        """
        call = create(
            "/v1/code-audit/scans",
            given(repositoryId=repository_id, projectId=project_id),
            idempotency_key,
            dry_run=dry_run,
            wait_seconds=wait_seconds,
            organizationId=self._organization(organization_id),
        )
        return (await self._core.result(call, ScanStart)).root

    async def request(self, preparation_id: str, *, repository_id: str) -> ScanStarted | ScanStarting | ScanNotStarted:
        """Returns the state of a scan that was requested: `started` with the scan, `starting`, or `failed`."""
        call = get(path("/v1/code-audit/scan-requests/{}", preparation_id), repositoryId=repository_id)
        return (await self._core.result(call, ScanStart)).root

    async def get(self, scan_id: str, *, wait_seconds: int | None = None) -> ScanDetail:
        """Returns a scan with its progress.

        wait_seconds: waits up to 20 seconds until the scan has ended.
        """
        call = get(path("/v1/code-audit/scans/{}", scan_id), wait_seconds=wait_seconds)
        return await self._core.result(call, ScanDetail)

    async def wait(
        self,
        scan: str | Scan | ScanDetail | ScanStarted | ScanStarting | ScanNotStarted,
        *,
        on_progress: Callable[[ScanDetail], None] | None = None,
        timeout: float | None = None,
    ) -> ScanDetail:
        """Waits until a scan has ended, and returns it: `completed`, `failed`, or `canceled`.

        scan: a scan, its ID, or the result of `start` or `request`.
        on_progress: is called with the scan each time it was read, every two seconds.
        timeout: in seconds. By default, it waits as long as the scan takes.

        Raises ScanStartFailed if the scan couldn't be started, and WaitTimedOut if the timeout is over first.
        """
        deadline = None if timeout is None else monotonic() + timeout
        scan_id = await self._started(scan, deadline)
        while True:
            began = monotonic()
            # A scan whose progress isn't shown needs fewer requests.
            held = None if on_progress or deadline is not None else _LONGEST_WAIT_SECONDS
            found = await self.get(scan_id, wait_seconds=held)
            if on_progress is not None:
                on_progress(found)
            if found.status in _ENDED:
                return found
            await _pause(_POLL_SECONDS - (monotonic() - began), deadline)

    async def _started(
        self, scan: str | Scan | ScanDetail | ScanStarted | ScanStarting | ScanNotStarted, deadline: float | None
    ) -> str:
        while isinstance(scan, ScanStarting):
            await _pause(scan.retry_after_seconds, deadline)
            scan = await self.request(scan.preparation_id, repository_id=scan.repository_id)
        if isinstance(scan, ScanNotStarted):
            raise ScanStartFailed(scan.error.message, code=scan.error.code)
        if isinstance(scan, ScanStarted):
            return scan.scan.id
        return scan if isinstance(scan, str) else scan.id

    async def diff(self, scan_id: str, *, base: str | None = None) -> Comparison:
        """Returns the findings that are new in a completed scan, and those that are fixed.

        base: the ID of the scan to compare with, by default the production branch's last completed one before it.
        """
        call = get(path("/v1/code-audit/scans/{}/diff", scan_id), base=base)
        return await self._core.result(call, Comparison)

    async def issues(self, scan_id: str) -> ScanIssues:
        """Returns the findings of a completed scan, most urgent first.

        Raises ScanInProgress until the scan is completed, and UnlockRequired if its report is locked.
        """
        return await self._core.result(get(path("/v1/code-audit/scans/{}/issues", scan_id)), ScanIssues)

    async def sarif(self, scan_id: str) -> dict[str, Any]:
        """Returns the readable findings of a completed scan as a SARIF 2.1.0 log."""
        return await self._core.document(get(path("/v1/code-audit/scans/{}/sarif", scan_id)))

    async def unlock(self, scan_id: str, *, dry_run: bool = False) -> Unlocked:
        """Unlocks all findings of a completed scan for its `unlock_credits`. Repeated calls charge only once."""
        call = change("POST", path("/v1/code-audit/scans/{}/unlock", scan_id), dry_run=dry_run, repeatable=True)
        return await self._core.result(call, Unlocked)


async def _pause(seconds: float, deadline: float | None) -> None:
    """Sleeps. Raises WaitTimedOut if that would exceed the deadline."""
    if deadline is not None and monotonic() + seconds > deadline:
        raise WaitTimedOut("The scan hasn't ended in time. It continues.")
    await sleep_async(max(0.0, seconds))

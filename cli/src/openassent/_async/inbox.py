"""The inbox of findings."""

from collections.abc import Sequence
from datetime import datetime

from openassent._async._pages import AsyncPages
from openassent._async._resource import AsyncResource
from openassent._calls import change, create, get, given, path
from openassent.models import InboxItem, InboxItemChange, InboxItemDetail, InboxItemResult, InboxItemResults
from openassent.values import InboxSource, InboxStatus, Priority


class AsyncInbox(AsyncResource):
    """The organization's findings."""

    def list(
        self,
        *,
        status: InboxStatus | None = None,
        priority: Priority | None = None,
        source: InboxSource | None = None,
        project_id: str | None = None,
        repository_id: str | None = None,
        vendor_id: str | None = None,
        since: datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        organization_id: str | None = None,
    ) -> AsyncPages[InboxItem]:
        """Lists the organization's findings, most recently updated first. Filters can be combined."""
        query = {
            "status": status,
            "priority": priority,
            "source": source,
            "projectId": project_id,
            "repositoryId": repository_id,
            "vendorId": vendor_id,
            "since": since,
            "limit": limit,
            "organizationId": self._organization(organization_id),
        }
        return AsyncPages(self._core, "/v1/inbox", InboxItem, cursor, query)

    async def get(self, item_id: str) -> InboxItemDetail:
        """Returns a finding with its evidence and fix."""
        return await self._core.result(get(path("/v1/inbox/{}", item_id)), InboxItemDetail)

    async def update(
        self, item_id: str, *, status: InboxStatus, version: str, reason: str | None = None, dry_run: bool = False
    ) -> InboxItem:
        """Changes the status of a finding.

        version: the item's as you read it. Raises Conflict if the item has changed since: read it again, then decide.
        """
        body = given(status=status, version=version, reason=reason)
        # The service recognizes a change that the item already has.
        call = change("PATCH", path("/v1/inbox/{}", item_id), body, dry_run=dry_run, repeatable=True)
        return await self._core.result(call, InboxItem)

    async def update_many(
        self,
        changes: Sequence[InboxItemChange],
        *,
        organization_id: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Sequence[InboxItemResult]:
        """Changes the status of up to 100 findings, each on its own. Some can fail while others succeed.

        Returns the item or the error of each change, in the same order.
        """
        items = [it.model_dump(mode="json", by_alias=True, exclude_none=True) for it in changes]
        organization_id = self._organization(organization_id)
        call = create(
            "/v1/inbox",
            {"items": items},
            idempotency_key,
            method="PATCH",
            dry_run=dry_run,
            organizationId=organization_id,
        )
        return (await self._core.result(call, InboxItemResults)).results

    async def create_github_issue(
        self, item_id: str, *, existing_issue: int | str | None = None, dry_run: bool = False
    ) -> InboxItem:
        """Opens a GitHub issue for a code finding, or returns the item with the issue that it has.

        existing_issue: the number or the URL of an issue to link in place of opening one.

        Raises Conflict while the outcome of an attempt isn't known: call it again after `retry_after` seconds. That
        never opens a second issue.
        """
        body = given(existingIssue=existing_issue)
        call = change("POST", path("/v1/inbox/{}/github-issue", item_id), body, dry_run=dry_run, repeatable=True)
        return await self._core.result(call, InboxItem)

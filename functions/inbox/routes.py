"""Routes of `inbox`: list, get, and update findings, and open GitHub issues for them."""

from typing import Annotated

from fastapi import Query

from controlplane.core.ids import InboxItemId
from controlplane.http.access import Access, Requires, Resource
from controlplane.http.app import ControlRouter
from controlplane.http.envelope import Page
from controlplane.http.pagination import Cursor, CursorCodec, Limit
from controlplane.http.responses import refuses
from controlplane.rules import issues
from controlplane.store import inbox, inbox_items, keys
from controlplane.store.inbox_items import Status
from inbox.schemas import InboxItem, InboxItemDetail, InboxItemUpdate, IssueRequest

router = ControlRouter(tags=["Inbox"])

ITEM = Resource(
    "itemId",
    InboxItemId,
    keys.inbox_item,
    inbox_items.InboxItem.from_item,
    project_of=lambda item: item.project_id,
)

ListsItems = Annotated[Access[None], Requires("inbox.read", organization="query", projects="filtered")]
ReadsItem = Annotated[Access[inbox_items.InboxItem], Requires("inbox.read", resource=ITEM)]
ChangesItem = Annotated[Access[inbox_items.InboxItem], Requires("inbox.write", resource=ITEM, user_token=True)]
OpensIssue = Annotated[
    Access[inbox_items.InboxItem], Requires("inbox.write", role="admin", resource=ITEM, user_token=True)
]

StatusFilter = Annotated[Status | None, Query(description="Returns only items with this status.", examples=["open"])]


@router.get("/v1/inbox", operation_id="listInboxItems", summary="List inbox items")
async def list_inbox_items(
    access: ListsItems, status: StatusFilter = None, limit: Limit = 50, cursor: Cursor = None
) -> Page[InboxItem]:
    """Lists the organization's findings, most recently updated first. Runtime findings have their `runtimeVendor`.

    An item that changes during pagination moves to the front of the list. Every other item is returned exactly once.

    An API key with `projectIds` gets only the findings of those projects. Its pages can have fewer items than `limit`,
    or none, while `hasMore` is true.
    """
    codec = CursorCodec(cursor, "listInboxItems", access.organization_id, status or "")
    if access.project_ids is None:
        page = inbox.list_items(access.organization_id, status, limit, codec.after)
    else:
        page = inbox.list_items_of(access.project_ids, access.organization_id, status, limit, codec.after)
    return Page([InboxItem.of(item) for item in page.items], codec.cursor(page.next_position))


@router.get("/v1/inbox/{itemId}", operation_id="getInboxItem", summary="Get an inbox item")
async def get_inbox_item(access: ReadsItem) -> InboxItemDetail:
    """Returns a finding with its evidence. A runtime finding has a `runtimeVendor`, the vendor to decide about."""
    return InboxItemDetail.of(access.resource)


@router.patch("/v1/inbox/{itemId}", operation_id="updateInboxItem", summary="Change an inbox item's status")
@refuses(inbox.StaleVersion)
async def update_inbox_item(access: ChangesItem, body: InboxItemUpdate) -> InboxItem:
    """Changes the status of a finding. Any transition is allowed.

    `version` must be the version of the item as you read it. If the item has changed since, the request fails with 409,
    and `details` has `currentVersion` and `currentStatus`: read the item again, then decide. Retrying the same request
    succeeds. Setting the status that the item already has changes nothing.
    """
    return InboxItem.of(inbox.change_status(access.resource, body.status, body.version, access.user_id, body.reason))


@router.post(
    "/v1/inbox/{itemId}/github-issue",
    operation_id="createGithubIssue",
    summary="Open or link an issue for a finding",
    status_code=201,
    response_description="The item with its issue, opened or linked now or earlier.",
)
@refuses(
    issues.NotACodeFinding,
    issues.FindingsLocked,
    issues.RepositoryNotLinked,
    issues.HasAnotherIssue,
    issues.CreationPending,
    issues.CreationRefused,
    issues.LinkRefused,
)
async def create_github_issue(access: OpensIssue, body: IssueRequest | None = None) -> InboxItem:
    """Opens a GitHub issue for a code finding in the finding's repository. Needs no body.

    A finding has one issue: if it was opened before, the item is returned with that `githubIssue`. An error whose
    `details.status` is `creation_pending` means that the outcome isn't known yet. Retry later: a retry never opens a
    second issue. `creation_refused` means that GitHub rejected the issue, for the reason in `details.reason`.

    With `existingIssue`, that issue is linked to the finding, and none is opened. Several findings can have the same
    issue. `link_refused` means that the repository has no such issue, or that it is a pull request.
    """
    existing = None if body is None else body.existing_issue
    return InboxItem.of(await issues.open_issue(access.resource, access.user_id, existing))

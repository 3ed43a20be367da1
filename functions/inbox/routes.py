"""HTTP of `inbox`: findings, what people decide about them, and the issues they open for them."""

from typing import Annotated

from fastapi import Query

from controlplane import ids
from controlplane.access import Access, Requires, Resource
from controlplane.app import ControlRouter
from controlplane.described import refuses
from controlplane.envelope import Page
from controlplane.pagination import Cursor, Limit, Walk
from controlplane.store import inbox, keys
from controlplane.store.inbox import Status
from inbox import service
from inbox.schemas import InboxItem, InboxItemDetail, InboxItemUpdate

router = ControlRouter(tags=["Inbox"])

ITEM = Resource("itemId", ids.INBOX_ITEM, keys.inbox_item, inbox.read_item)

ListsItems = Annotated[Access[None], Requires("inbox.read", organization="query")]
ReadsItem = Annotated[Access[inbox.InboxItem], Requires("inbox.read", resource=ITEM)]
ChangesItem = Annotated[Access[inbox.InboxItem], Requires("inbox.write", resource=ITEM, user_token=True)]
OpensIssue = Annotated[Access[inbox.InboxItem], Requires("inbox.write", role="admin", resource=ITEM, user_token=True)]

StatusFilter = Annotated[Status | None, Query(description="Only items in this status.", examples=["open"])]


@router.get("/v1/inbox", operation_id="listInboxItems", summary="List inbox items")
async def list_inbox_items(
    access: ListsItems, status: StatusFilter = None, limit: Limit = 50, cursor: Cursor = None
) -> Page[InboxItem]:
    """The organization's findings, the most recently updated first.

    An item that changes while its list is walked moves to the front; every other one is met exactly once.
    """
    walk = Walk(cursor, "listInboxItems", access.organization_id, status or "")
    page = inbox.list_items(access.organization_id, status, limit, walk.after)
    return Page([InboxItem.of(item) for item in page.items], walk.cursor(page.next_position))


@router.get("/v1/inbox/{itemId}", operation_id="getInboxItem", summary="Get an inbox item")
async def get_inbox_item(access: ReadsItem) -> InboxItemDetail:
    """One finding, with its evidence. A runtime finding has the `runtimeVendor` to decide about."""
    return InboxItemDetail.of(access.resource)


@router.patch("/v1/inbox/{itemId}", operation_id="updateInboxItem", summary="Change an inbox item's status")
@refuses(service.StaleVersion)
async def update_inbox_item(access: ChangesItem, body: InboxItemUpdate) -> InboxItem:
    """Sets the status: from any to any.

    `version` is that of the item as it was read. Where the item changed since, `details` has `currentVersion` and
    `currentStatus`: read it again, then decide. The same request sent again, because its answer was lost, succeeds. The
    status that the item has already changes nothing.
    """
    return InboxItem.of(service.change_status(access.resource, body, access.user_id))


@router.post(
    "/v1/inbox/{itemId}/github-issue",
    operation_id="createGithubIssue",
    summary="Open an issue for a finding",
    status_code=201,
    response_description="The item with its issue, opened now or before.",
)
@refuses(service.NotACodeFinding, service.RepositoryNotLinked, service.CreationPending, service.CreationRefused)
async def create_github_issue(access: OpensIssue) -> InboxItem:
    """Opens an issue for a code finding in its repository, once. Takes no body.

    The answer has `githubIssue`; where the item has one already, it is answered again. While it is not known whether
    the issue was opened, `details.status` is `creation_pending`: send the request again later, it never opens a second
    one. It is `creation_refused` where the code host made none, for `details.reason`.
    """
    return InboxItem.of(await service.open_issue(access.resource, access.user_id))

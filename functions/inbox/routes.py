"""Routes of `inbox` about several findings: the list, and changes of several at once."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query

from controlplane.access.access import Access, Requires
from controlplane.access.idempotency import IdempotencyKey, idempotent
from controlplane.findings import conversations, inbox
from controlplane.findings import items as inbox_items
from controlplane.findings import lists as inbox_lists
from controlplane.findings.batches import Outcome, change_each
from controlplane.findings.items import Source, Status
from controlplane.findings.lists import Sort, Wanted
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.fields import Time, to_timestamp
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from inbox.fields import with_assignees
from inbox.schemas import InboxItem, InboxItemResult, InboxItemResults, InboxItemsUpdate

router = ControlRouter(tags=["Inbox"])

ListsItems = Annotated[Access[None], Requires("inbox.read", organization="query", projects="filtered")]
ChangesItems = Annotated[Access[None], Requires("inbox.write", organization="query", user_token=True)]
_ID: dict[str, Any] = {"min_length": 1, "max_length": 100}
StatusFilter = Annotated[Status | None, Query(description="Returns only items with this status.", examples=["open"])]
PriorityFilter = Annotated[
    Priority | None, Query(description="Returns only items with this priority.", examples=["P0"])
]
SourceFilter = Annotated[Source | None, Query(description="Returns only items of this source.", examples=["runtime"])]
ProjectFilter = Annotated[
    str | None,
    Query(
        alias="projectId",
        description="Returns only items of this project.",
        examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
        **_ID,
    ),
]
RepositoryFilter = Annotated[
    str | None,
    Query(
        alias="repositoryId",
        description="Returns only findings in this repository: in its code, and advisories about its packages.",
        examples=["rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
        **_ID,
    ),
]
VendorFilter = Annotated[
    str | None,
    Query(
        alias="vendorId",
        description="Returns only findings about this vendor, of code and websites.",
        examples=["segment"],
        **_ID,
    ),
]
AssigneeFilter = Annotated[
    str | None,
    Query(
        description="Returns only items of this assignee: a user ID, `me`, or `none`.",
        examples=["me"],
        **_ID,
    ),
]
Since = Annotated[
    Time | None,
    Query(description="Returns only items that were updated at this time or later.", examples=["2026-03-01T00:00:00Z"]),
]
Words = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        description="Returns only items whose title, summary, path, repository, or vendor contain all of these words.",
        examples=["hotjar"],
    ),
]
SortQuery = Annotated[
    Sort,
    Query(
        description="`updated`: most recently updated first. `priority`: P0 first, no priority last, then `updated`.",
        examples=["priority"],
    ),
]


@router.get("/v1/inbox", summary="List inbox items")
async def list_inbox_items(  # noqa: PLR0917 (FastAPI passes them by name)
    access: ListsItems,
    status: StatusFilter = None,
    priority: PriorityFilter = None,
    source: SourceFilter = None,
    project_id: ProjectFilter = None,
    repository_id: RepositoryFilter = None,
    vendor_id: VendorFilter = None,
    assignee: AssigneeFilter = None,
    since: Since = None,
    q: Words = None,
    sort: SortQuery = "updated",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[InboxItem]:
    """Lists the organization's findings, most recently updated first. Runtime findings may have a `runtimeVendor`.

    An item that changes during pagination moves to the front of the list. Every other item is returned exactly once.

    With `sort=priority`, the 500 items that were updated last are sorted, or 200 with a filter by an ID of a repository
    or vendor. Those before them follow, sorted likewise.

    Filters can be combined. An ID that the organization doesn't have selects nothing. With any filter other than
    `status` and `since`, and for an API key with `projectIds`, which gets only the findings of those projects, a page
    reads up to 200 items and returns those that match: fewer than `limit`, or none, while `hasMore` is true. Follow
    `nextCursor` to the end.
    """
    asked = Wanted(
        priority or "",
        source or "",
        project_id or "",
        repository_id or "",
        vendor_id or "",
        text=" ".join((q or "").split()),
        assignee=_find_assignee(access, assignee),
    )
    updated_since = to_timestamp(since)
    # With the status alone, the binding is that of cursors that were issued before there were other filters.
    others = {"since": updated_since, "sort": "" if sort == "updated" else sort}
    narrowed = {name: value for name, value in {**asked._asdict(), **others}.items() if value}
    binding = f"{status or ''}{'&' if narrowed else ''}{urlencode(narrowed)}"
    codec = CursorCodec(cursor, "listInboxItems", access.organization_id, binding)
    wanted = asked._replace(project_ids=access.project_ids)
    page = inbox_lists.list_complete(
        access.organization_id, status, wanted, limit, codec.after, since=updated_since, sort=sort
    )
    return Page([InboxItem.of(item) for item in with_assignees(access, *page.items)], codec.cursor(page.next_position))


def _find_assignee(access: Access[Any], assignee: str | None) -> str:
    if assignee != "me":
        return assignee or ""
    if access.principal.user_id is None:
        raise InvalidPayload.at(["assignee"], "An API key has no person. Send a user ID, or `none`.", "not_a_person")
    return access.user_id


@router.patch("/v1/inbox", summary="Change several inbox items")
async def update_inbox_items(
    access: ChangesItems, body: InboxItemsUpdate, idempotency_key: IdempotencyKey = None
) -> Answer[InboxItemResults]:
    """Changes up to 100 findings of an organization, each with its own `version` and change.

    Each item is changed on its own, so some can fail while others succeed: `results` has the status code and the item
    or the error of each, in the order of the request. If the request as a whole fails with 429 or 503, some items may
    have been changed. Repeating it completes it. A new assignee gets one email for all of the items.
    """
    return idempotent(
        access,
        "updateInboxItems",
        idempotency_key,
        body,
        # Without the leg: a repetition after a crash completes the changes, and versions keep it from repeating any.
        lambda _: InboxItemResults(results=_change_each(access, body)),
    )


def _change_each(access: Access[None], body: InboxItemsUpdate) -> list[InboxItemResult]:
    organization_id, user_id = access.organization_id, access.user_id
    wanted = {change.id: change for change in body.items}
    parsed = [item_id for change in body.items if (item_id := InboxItemId.parse(change.id))]
    own = [item_id for item_id in parsed if item_id.organization_id == organization_id]
    versions = {item_id: wanted[item_id].version for item_id in own}

    def change(item: inbox_items.InboxItem, version: str) -> inbox_items.InboxItem:
        return inbox.change_item(item, wanted[item.item_id].to_change(user_id), version, user_id, announces=False)

    changed = change_each(versions, inbox.find_items(own), change)
    moved = [it.item for it in changed if it.item and it.is_changed]
    conversations.announce_assigned((it for it in moved if wanted[it.item_id].assignee_id), user_id)
    shown = {it.item_id: it for it in with_assignees(access, *(it.item for it in changed if it.item))}
    outcomes: dict[str, Outcome] = {
        item_id: it._replace(item=shown.get(item_id)) for item_id, it in zip(own, changed, strict=True)
    }
    return [InboxItemResult.of(item_id, outcomes.get(item_id, Outcome(None))) for item_id in wanted]

"""Routes of `inbox`: list, get, and update findings, and open GitHub issues for them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Path, Query

from controlplane.access.access import Access, Requires, Resource
from controlplane.access.idempotency import IdempotencyKey, idempotent
from controlplane.findings import conversations, inbox, issues
from controlplane.findings import items as inbox_items
from controlplane.findings import lists as inbox_lists
from controlplane.findings.batches import Outcome, change_each
from controlplane.findings.inbox import NotAssignable
from controlplane.findings.items import Source, Status
from controlplane.findings.lists import Sort, Wanted
from controlplane.organizations import members
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.fields import Time, to_timestamp
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.table import keys
from controlplane.platform.table.table import Leg
from inbox.schemas import (
    Comment,
    CommentCreate,
    InboxItem,
    InboxItemDetail,
    InboxItemResult,
    InboxItemResults,
    InboxItemsUpdate,
    InboxItemUpdate,
    IssueRequest,
)

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
ChangesItems = Annotated[Access[None], Requires("inbox.write", organization="query", user_token=True)]
OpensIssue = Annotated[
    Access[inbox_items.InboxItem], Requires("inbox.write", role="admin", resource=ITEM, user_token=True)
]

CommentPath = Annotated[
    str, Path(alias="commentId", description="The comment's ID.", examples=["cmt_01kb2m3n4p5q6r7s8t"])
]
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
    return Page([InboxItem.of(item) for item in _shown(access, *page.items)], codec.cursor(page.next_position))


def _find_assignee(access: Access[Any], assignee: str | None) -> str:
    if assignee != "me":
        return assignee or ""
    if access.principal.user_id is None:
        raise InvalidPayload.at(["assignee"], "An API key has no person. Send a user ID, or `none`.", "not_a_person")
    return access.user_id


def _shown(access: Access[Any], *items: inbox_items.InboxItem) -> list[inbox_items.InboxItem]:
    """Returns the items with their assignees, as the caller may see them."""
    return conversations.with_assignees(items, named=_sees_names(access))


def _sees_names(access: Access[Any]) -> bool:
    return "members.read" in access.principal.scopes


@router.get("/v1/inbox/{itemId}", summary="Get an inbox item")
async def get_inbox_item(access: ReadsItem) -> InboxItemDetail:
    """Returns a finding with its evidence. A runtime finding may have a `runtimeVendor`, the vendor to decide about."""
    return _detail(access, access.resource)


@router.patch("/v1/inbox/{itemId}", summary="Change an inbox item")
@refuses(inbox.StaleVersion, NotAssignable)
async def update_inbox_item(access: ChangesItem, body: InboxItemUpdate) -> InboxItem:
    """Changes the status of a finding, its assignee, or both. Any transition is allowed.

    A dismissal with `until` snoozes the finding: it opens again at that time. A new assignee gets an email.

    `version` must be the version of the item as you read it. If the item has changed since, the request fails with 409,
    and `details` has `currentVersion` and `currentStatus`: read the item again, then decide. Retrying the same request
    succeeds. Setting what the item already has changes nothing.
    """
    changed = inbox.change_item(access.resource, body.to_change(access.user_id), body.version, access.user_id)
    (item,) = _shown(access, changed)
    return InboxItem.of(item)


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
    shown = {it.item_id: it for it in _shown(access, *(it.item for it in changed if it.item))}
    outcomes: dict[str, Outcome] = {
        item_id: it._replace(item=shown.get(item_id)) for item_id, it in zip(own, changed, strict=True)
    }
    return [InboxItemResult.of(item_id, outcomes.get(item_id, Outcome(None))) for item_id in wanted]


@router.post(
    "/v1/inbox/{itemId}/github-issue",
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
    (item,) = _shown(access, await issues.open_issue(access.resource, access.user_id, existing))
    return InboxItem.of(item)


@router.post("/v1/inbox/{itemId}/comments", summary="Comment on a finding", status_code=201)
@refuses(conversations.TooManyComments)
async def create_comment(
    access: ChangesItem, body: CommentCreate, idempotency_key: IdempotencyKey = None
) -> Answer[InboxItemDetail]:
    """Adds a comment to a finding, and returns the finding. Members whom it mentions get an email if they want it."""
    item = access.resource

    def create(legs: Mapping[str, Leg]) -> InboxItemDetail:
        sees_members = _sees_names(access)
        added = conversations.add_comment(item, body.text, access.user_id, legs, sees_members=sees_members)
        return _detail(access, replace(item, comments=(*item.comments, added)))

    payload = {"itemId": item.item_id, "text": body.text}
    return idempotent(access, "createComment", idempotency_key, payload, create)


@router.delete("/v1/inbox/{itemId}/comments/{commentId}", summary="Delete a comment")
async def delete_comment(access: ChangesItem, comment_id: CommentPath) -> InboxItemDetail:
    """Deletes a comment, and returns the finding. Admins and owners can delete those of others."""
    item, role = access.resource, access.membership.role
    conversations.delete_comment(item, comment_id, access.user_id, role)
    return _detail(access, replace(item, comments=tuple(it for it in item.comments if it.id != comment_id)))


def _detail(access: Access[inbox_items.InboxItem], item: inbox_items.InboxItem) -> InboxItemDetail:
    """Returns the item with the names of its assignee, and of those in its comments, if the caller may see them."""
    named = conversations.people_of(item.comments) if _sees_names(access) else ()
    (shown,) = _shown(access, item)
    people = members.find_members(item.organization_id, named)
    return InboxItemDetail.of(shown, [Comment.of(it, people) for it in item.comments])

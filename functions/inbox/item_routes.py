"""Routes of `inbox` about one finding: read it, change it, and comment on it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from fastapi import Path

from controlplane.access.access import Access, Requires
from controlplane.access.idempotency import IdempotencyKey, idempotent
from controlplane.findings import conversations, inbox
from controlplane.findings import items as inbox_items
from controlplane.findings.inbox import NotAssignable
from controlplane.organizations import members
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer
from controlplane.platform.http.route import refuses
from controlplane.platform.table.table import Leg
from inbox.fields import ITEM, sees_names, with_assignees
from inbox.item_schemas import Comment, CommentCreate, InboxItemDetail
from inbox.schemas import InboxItem, InboxItemUpdate

router = ControlRouter(tags=["Inbox"])

ReadsItem = Annotated[Access[inbox_items.InboxItem], Requires("inbox.read", resource=ITEM)]
ChangesItem = Annotated[Access[inbox_items.InboxItem], Requires("inbox.write", resource=ITEM, user_token=True)]
CommentPath = Annotated[
    str, Path(alias="commentId", description="The comment's ID.", examples=["cmt_01kb2m3n4p5q6r7s8t"])
]


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
    (item,) = with_assignees(access, changed)
    return InboxItem.of(item)


@router.post("/v1/inbox/{itemId}/comments", summary="Comment on a finding", status_code=201)
@refuses(conversations.TooManyComments)
async def create_comment(
    access: ChangesItem, body: CommentCreate, idempotency_key: IdempotencyKey = None
) -> Answer[InboxItemDetail]:
    """Adds a comment to a finding, and returns the finding. Members whom it mentions get an email if they want it."""
    item = access.resource

    def create(legs: Mapping[str, Leg]) -> InboxItemDetail:
        sees_members = sees_names(access)
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
    named = conversations.people_of(item.comments) if sees_names(access) else ()
    (shown,) = with_assignees(access, item)
    people = members.find_members(item.organization_id, named)
    return InboxItemDetail.of(shown, [Comment.of(it, people) for it in item.comments])

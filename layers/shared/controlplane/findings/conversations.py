"""People who work on a finding together: its assignee, its comments, and the emails to those whom they concern.

Comments are part of the item, so they are deleted with it. They name people by the IDs of their accounts: an address
after `@` is stored as the ID of the member who has it, and only IDs that were members' then are mentions. Names are
read from the roster for each response, so a person who has left has none, and is no longer an assignee: a membership
that began after an assignment doesn't bring it back.

A comment changes neither the item's version nor its position, because no decision depends on it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from controlplane.findings.items import Comment, InboxItem
from controlplane.organizations import members
from controlplane.organizations.store import MemberItem, role_check
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import Conflict, InvalidPayload, NotFound, RoleRequired, known
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import outbox
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Leg, LegFailed, Put, Recorded, Unrecorded, Update, table

# An item has room for these in 4-byte characters, next to its evidence.
MOST_COMMENTS, LONGEST_COMMENT = 50, 1_000
MOST_MENTIONS = 10
_COMMENT = "cmt_"
# Each ends at the first character that can't belong to it, so the time is linear in the text.
_ADDRESSED = re.compile(r"(?<!\S)@([^\s@]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8})")
_MENTIONED = re.compile(r"@(usr_[0-9a-hjkmnp-tv-z]{16})(?![0-9A-Za-z_])")


class TooManyComments(Conflict):
    message = f"A finding has at most {MOST_COMMENTS} comments. Delete one first."
    fixed_details: ClassVar = {"reason": "comment_limit", "limit": MOST_COMMENTS}


class CommentLength(InvalidPayload):
    message = f"A comment has 1 to {LONGEST_COMMENT:,} characters, with those whom it mentions."


class UnknownComment(NotFound):
    """The comment or its item doesn't exist, or was deleted."""


# People


def with_assignees(items: Sequence[InboxItem], *, named: bool = True) -> list[InboxItem]:
    """Returns the items of one organization with the names of their assignees, and without those who have left.

    named: False if the caller may not see names. Consistent. Takes a round trip if any item is assigned, unless the
    names are known, as those of a list that was filtered by the assignee.
    """
    unknown = {it.assignee.user_id for it in items if it.assignee and it.assignee.name is None}
    found = members.find_members(items[0].organization_id, unknown) if unknown else {}

    def with_assignee(item: InboxItem) -> InboxItem:
        assignee = item.assignee
        if assignee is not None and assignee.name is None:
            member = found.get(assignee.user_id)
            is_current = member is not None and member.joined_at <= assignee.since
            assignee = assignee._replace(name=member.name, email=member.email) if member and is_current else None
        if assignee is not None and not named:
            assignee = assignee._replace(name=None, email=None)
        return replace(item, assignee=assignee)

    return [with_assignee(item) for item in items]


def people_of(comments: Iterable[Comment]) -> set[str]:
    """Returns the IDs of the accounts that the comments name."""
    return {user_id for it in comments for user_id in (it.by, *it.mentions)}


def shown_text(comment: Comment, people: Mapping[str, MemberItem], former: str | None = None) -> str:
    """Returns the text with the names of those whom it mentions. former: replaces the IDs of those who have left."""

    def shown(match: re.Match[str]) -> str:
        user_id = match[1]
        if user_id in people:
            return f"@{people[user_id].name}"
        return f"@{former}" if former and user_id in comment.mentions else match[0]

    return _MENTIONED.sub(shown, comment.text)


def _store_mentions(organization_id: str, text: str, *, by_address: bool) -> tuple[str, tuple[str, ...]]:
    """Returns the text with the IDs of the members whose addresses it has after `@`, and all members it mentions.

    by_address: False keeps addresses as they are. The first ten count. Takes two round trips if it mentions anyone.
    """
    addressed = _ADDRESSED.findall(text) if by_address else []
    addresses = list(dict.fromkeys(map(normalize_email, addressed)))[:MOST_MENTIONS]
    mentioned = list(dict.fromkeys(_MENTIONED.findall(text)))[: MOST_MENTIONS - len(addresses)]
    accounts = table.batch_get([keys.user_email(address) for address in addresses])
    owners = {address: item["userId"] for address, item in zip(addresses, accounts, strict=True) if item}
    found = members.find_members(organization_id, [*owners.values(), *mentioned])

    def stored(match: re.Match[str]) -> str:
        user_id = owners.get(normalize_email(match[1]))
        return f"@{user_id}" if user_id in found else match[0]

    return _ADDRESSED.sub(stored, text), tuple(found)


# Comments


def add_comment(
    item: InboxItem, text: str, user_id: str, extra_legs: Mapping[str, Leg], *, sees_members: bool = True
) -> Comment:
    """Adds a comment to the item, and leaves an email to each member whom it mentions to the sweep.

    sees_members: False if the caller may not know who the members are. Addresses then mention no one.

    Raises CommentLength, TooManyComments, UnknownComment if the item or the membership was deleted, and LegFailed for
    an extra leg.
    """
    if not 0 < len(text) <= LONGEST_COMMENT:
        raise CommentLength
    stored, mentioned = _store_mentions(item.organization_id, text, by_address=sees_members)
    comment = Comment(f"{_COMMENT}{ids.new_local()}", clock.timestamp(), user_id, stored, mentioned)
    change = Update(
        keys.inbox_item(*item.item_id.location),
        "SET #comments = list_append(if_not_exists(#comments, :none), :added)",
        "attribute_exists(pk) AND (attribute_not_exists(#comments) OR size(#comments) < :most)",
        {"none": [], "added": [to_map(comment)], "most": MOST_COMMENTS},
    )
    organization_id, local = item.item_id.location
    commenter = Update(keys.commenter(organization_id, user_id, local), "SET #userId = :id", None, {"id": user_id})
    legs: dict[str, Leg] = {
        "item": change,
        "commenter": commenter,
        "commented": Put({**keys.commented(user_id, organization_id)._asdict(), "organizationId": organization_id}),
        **announce(item.item_id, comment.id, {*mentioned} - {user_id}),
    }
    record = _recorded(Action.INBOX_ADD_COMMENT, item, after={"comment": comment.id})
    try:
        caller = role_check(user_id, item.organization_id, "member")
        table.transact({**extra_legs, "caller": caller, **legs}, record)
    except LegFailed as failure:
        if failure.leg in extra_legs:
            raise
        is_full = failure.leg == "item" and failure.item is not None
        raise (TooManyComments if is_full else UnknownComment) from None
    return comment


def delete_comment(item: InboxItem, comment_id: str, user_id: str, role: Role) -> None:
    """Deletes a comment of the person, or any if they are an admin. Raises UnknownComment, RoleRequired."""
    key = keys.inbox_item(*item.item_id.location)
    read: InboxItem | None = item

    def delete() -> None:
        nonlocal read
        current, read = read or _read_again(key), None
        places = [place for place, it in enumerate(current.comments) if it.id == comment_id]
        if not places:
            raise UnknownComment
        comment = current.comments[places[0]]
        least: Role = "member" if comment.by == user_id else "admin"
        if RANK[role] < RANK[least]:
            raise RoleRequired(least, role)
        place = f"#comments[{places[0]}]"
        change = Update(key, f"REMOVE {place}", f"{place}.#id = :id", {"id": comment_id})
        record = _recorded(Action.INBOX_DELETE_COMMENT, item, before={"comment": comment_id})
        legs: dict[str, Leg] = {"caller": role_check(user_id, item.organization_id, least), "item": change}
        # WriteConflict: another comment before it was deleted.
        table.transact(legs, record, {"caller": RoleRequired(least)}, WriteConflict)

    retry_on_conflict(delete, "the comments")


def _read_again(key: keys.Key) -> InboxItem:
    return InboxItem.from_item(known(table.get(key), UnknownComment))


def _recorded(action: Action, item: InboxItem, **changed: Mapping[str, Any]) -> Recorded:
    return Recorded(action, item.organization_id, item.item_id, item.title, **changed)


# Emails


def announce(item_id: InboxItemId, subject: str, user_ids: Iterable[str]) -> dict[str, Leg]:
    """Returns the legs that leave an email to each of the people to the sweep, or none if no emails are sent.

    subject: the ID of a comment, or what distinguishes an assignment from others of the item, and after `-` the number
    of items that were assigned with it.
    """
    if settings.email_sender is None:
        return {}
    message = {"version": 1, "kind": "send-notification", "organizationId": item_id.organization_id}
    message |= {"about": "mention", "subject": f"{item_id}-{subject}"}
    entries = [outbox.new_entry("emails", {**message, "userId": it}, after_seconds=0) for it in sorted(user_ids)]
    return {entry.key.sk: entry.leg for entry in entries}


def announce_assigned(items: Iterable[InboxItem], user_id: str) -> None:
    """Leaves one email to each other person to whom some of the items were assigned at once to the sweep.

    A repetition of the same assignments leaves emails that have been sent, and aren't sent again.
    """
    assigned: dict[str, list[InboxItem]] = {}
    for item in items:
        if item.assignee is not None and item.assignee.user_id != user_id:
            assigned.setdefault(item.assignee.user_id, []).append(item)
    legs: dict[str, Leg] = {}
    for assignee, theirs in assigned.items():
        subject = f"{theirs[0].version[:16]}-{len(theirs)}"
        legs |= announce(theirs[0].item_id, subject, [assignee])
    if legs:
        table.transact(legs, Unrecorded.MESSAGE)


def find_cause(item: InboxItem, subject: str, user_id: str) -> Comment | None:
    """Returns the comment that mentions the person, or None for an assignment. Raises LookupError if it is gone."""
    if not subject.startswith(_COMMENT):
        if item.assignee is None or item.assignee.user_id != user_id:
            raise LookupError("another assignee")
        return None
    found = next((it for it in item.comments if it.id == subject and user_id in it.mentions), None)
    if found is None:
        raise LookupError("no such comment")
    return found

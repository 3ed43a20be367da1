"""The inbox: an item for each finding of an advisory, a code audit, or the runtime, with the decision on it.

A changed item moves to the front of the lists. So its status, version, time, and position in both indexes are written
together, only by `update_leg`. The indexes serve only lists; no decision is based on them.

A version is derived from the former version and the request, so a repeated change recognizes itself.
"""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from controlplane.findings import conversations
from controlplane.findings.changes import Change, told_by, transact_and_tell
from controlplane.findings.items import MOST_FORMER, Assignee, InboxItem, RuntimeVendor, Status, StatusChange, to_former
from controlplane.organizations import store as organizations
from controlplane.platform.core import clock, ids
from controlplane.platform.core.actions import Action
from controlplane.platform.core.clock import expiry
from controlplane.platform.core.errors import Conflict, NotFound, known
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Index
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Delete, Leg, LegFailed, Put, Recorded, Update, table


class UnknownItem(NotFound):
    """The item doesn't exist, or was deleted."""


class StaleVersion(Conflict):
    message = "The item has changed since you read it. Read it again, then retry."

    def __init__(self, current: InboxItem) -> None:
        super().__init__(details={"currentVersion": current.version, "currentStatus": current.status})


class NotAssignable(Conflict):
    """The user isn't a member of the organization, or no longer is."""

    message = "Assign the finding to a member of the organization."
    fixed_details: ClassVar = {"reason": "not_a_member"}


# Keeps an item's assignee.
KEPT = ""


class ItemChange(NamedTuple):
    """A person's change of an item: its status, with a reason, its assignee, or both.

    status: None keeps it. until: when a dismissed item opens again, in the format of `clock.timestamp`.
    assignee: the ID of a member, None to remove it, or KEPT.
    """

    status: Status | None = None
    reason: str | None = None
    until: str | None = None
    assignee: str | None = KEPT

    def is_done(self, item: InboxItem) -> bool:
        """Returns whether the item is as wanted. Reads the assignee's membership if the item has that assignee."""
        if self.status is not None and (self.status, self.until) != (item.status, item.dismissed_until):
            return False
        current = item.assignee
        if self.assignee == KEPT or (current is None and self.assignee is None):
            return True
        if current is None or current.user_id != self.assignee:
            return False
        return conversations.with_assignees([item])[0].assignee is not None


# The attributes for the author and the reason of the status.
_REASONS = ("statusReason", "statusBy", "resolvedBy", "dismissedUntil")


class InboxPage(NamedTuple):
    """Items, and the position after which the next page starts (None on the last page)."""

    items: list[InboxItem]
    next_position: str | None


# Reading


def list_items(organization_id: str, status: Status | None, limit: int, after: str | None) -> InboxPage:
    """Returns one page of the organization's items, most recently updated first: all, or those in the status.

    Eventually consistent. An item that changes during pagination moves to the front, which has already been read. The
    others keep their positions, so each is returned once. Takes a second round trip if the page has a runtime finding
    without a vendor, or whose vendor is too long for its position.
    """
    page = read_positions(organization_id, status, limit, after)
    return page._replace(items=complete(page.items))


def read_positions(
    organization_id: str, status: Status | None, limit: int, after: str | None, since: str | None = None
) -> InboxPage:
    """Returns one page as `list_items` does, always in one round trip: too long vendors are None.

    since: the time, in the format of `clock.timestamp`, from which on the items must have been updated.
    """
    pk, index = _list_of(organization_id, status)
    page = table.query(pk, index=index, newest_first=True, limit=limit, after=after, lowest=since)
    items = [InboxItem.from_item(item) for item in page.items]
    return InboxPage(items, keys.inbox_position(page.next_sk) if page.next_sk else None)


def position_of(item: InboxItem) -> str:
    """Returns the item's position in the lists, after which a page can start."""
    return keys.inbox_order(item.updated_at, item.item_id.local)


def count_items(organization_id: str, status: Status, at_most: int) -> int:
    """Returns the number of the organization's items in the status, but at most that. Eventually consistent."""
    pk, index = _list_of(organization_id, status)
    return table.count(pk, index=index, at_most=at_most)


def _list_of(organization_id: str, status: Status | None) -> tuple[str, Index]:
    if status is None:
        return keys.organization_pk(organization_id), keys.INBOX
    return keys.inbox_status_pk(organization_id, status), keys.INBOX_BY_STATUS


def complete(items: list[InboxItem], *, with_code: bool = False) -> list[InboxItem]:
    """Adds the vendors of runtime findings that their positions lack.

    with_code: also add the repositories and vendors of code findings and advisories, which no position carries.
    """

    def lacks(item: InboxItem) -> bool:
        if item.source == "runtime":
            return item.runtime_vendor is None
        return with_code and item.repository_name is not None and item.repository_id is None

    lacking = [item.item_id for item in items if lacks(item)]
    found = find_items(lacking) if lacking else {}
    return [
        replace(
            item,
            runtime_vendor=item.runtime_vendor or found[item.item_id].runtime_vendor,
            repository_id=found[item.item_id].repository_id,
            vendor_ids=found[item.item_id].vendor_ids,
        )
        if item.item_id in found
        else item
        for item in items
    ]


def find_items(item_ids: Iterable[InboxItemId]) -> dict[str, InboxItem]:
    """Returns the items by id, without those that don't exist. Consistent, one round trip per 100 items."""
    distinct = dict.fromkeys(item_ids)
    found = table.batch_get([keys.inbox_item(*item_id.location) for item_id in distinct])
    return {item["itemId"]: InboxItem.from_item(item) for item in found if item}


def get_item(item_id: InboxItemId) -> InboxItem:
    """Returns the item. Consistent. Raises UnknownItem."""
    return InboxItem.from_item(known(table.get(keys.inbox_item(*item_id.location)), UnknownItem))


# Changing


def change_status(
    item: InboxItem, status: Status, version: str, user_id: str, reason: str | None, *, until: str | None = None
) -> InboxItem:
    """Sets the status if the item still has the version, and returns the item. Raises StaleVersion, UnknownItem.

    until: when a dismissed item opens again, in the format of `clock.timestamp`.
    """
    return change_item(item, ItemChange(status, reason, until), version, user_id)


def change_item(
    item: InboxItem, wanted: ItemChange, version: str, user_id: str, *, announces: bool = True
) -> InboxItem:
    """Changes the item if it still has the version, and returns it.

    If it has the version and is as wanted, nothing changes. The new version is derived from the old one and the
    request, so a retry after a lost response finds its own change and succeeds. An old version never recurs. Another
    person to whom the item is assigned gets an email, unless the caller `announces` the changes of many items at once.
    Raises StaleVersion, UnknownItem, NotAssignable.
    """
    next_version = _derive_version(item, wanted, version, user_id)
    if item.version == next_version or (item.version == version and wanted.is_done(item)):
        return item
    if item.version != version:
        raise StaleVersion(item)
    change = change_leg(item, wanted, next_version, user_id)
    legs: dict[str, Leg] = {"item": change}
    if wanted.until:
        legs["end"] = Put({**keys.snooze(wanted.until, item.item_id)._asdict(), "itemId": item.item_id})
    if wanted.assignee:
        legs["assignee"] = _assignee_check(item, wanted.assignee)
        told = {wanted.assignee} - {user_id} if announces else ()
        legs |= conversations.announce(item.item_id, next_version[:16], told)
    entries = told_by([Change(item.item_id, change, item.status)])
    try:
        legs |= {entry.key.sk: entry.leg for entry in entries}
        table.transact(legs, _recorded(item, wanted), {"assignee": NotAssignable})
    except LegFailed as failure:
        if failure.item is None:
            raise UnknownItem from None
        current = InboxItem.from_item(failure.item)
        if current.version != next_version:
            raise StaleVersion(current) from None
        return current
    return _after(item, change.values)


def _assignee_check(item: InboxItem, user_id: str) -> Leg:
    if not ids.is_root(ids.USER, user_id):
        raise NotAssignable
    return organizations.role_check(user_id, item.organization_id, "member")


def _recorded(item: InboxItem, wanted: ItemChange) -> Recorded:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    if wanted.status is not None:
        before["status"] = item.status
        after |= {"status": wanted.status, **({"until": wanted.until} if wanted.until else {})}
    if wanted.assignee != KEPT:
        before["assignee"] = item.assignee.user_id if item.assignee else None
        after["assignee"] = wanted.assignee
    action = Action.INBOX_ASSIGN if wanted.status is None else Action.INBOX_CHANGE_STATUS
    return Recorded(action, item.organization_id, item.item_id, item.title, before, after)


def _after(item: InboxItem, values: Mapping[str, Any]) -> InboxItem:
    """Returns the item after a person's change of it, whose values were written."""
    assignee = values.get("assignee", KEPT)
    kept = item.assignee if assignee == KEPT else assignee and Assignee(assignee["userId"], assignee["since"])
    changed = replace(item, version=values["version"], updated_at=values["updatedAt"], assignee=kept)
    if "status" not in values:
        return changed
    until = values.get("dismissedUntil")
    by, reason = values["statusBy"], values["statusReason"]
    current = StatusChange(values["status"], values["statusAt"], by, reason, until=until)
    return replace(
        changed,
        status=values["status"],
        status_reason=values["statusReason"],
        resolved_by=None,
        dismissed_until=until,
        history=(*item.history[-MOST_FORMER:], current),
    )


def _derive_version(item: InboxItem, wanted: ItemChange, version: str, user_id: str) -> str:
    parts = [item.item_id, version, wanted.status or "", user_id]
    parts += ["-" if wanted.reason is None else "=" + wanted.reason, *([wanted.until] if wanted.until else [])]
    parts += [] if wanted.assignee == KEPT else [f"@{wanted.assignee or ''}"]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def new_version() -> str:
    return secrets.token_hex(16)


def update_leg(
    item: InboxItem,
    version: str,
    status: Status | None = None,
    *,
    fields: Mapping[str, Any],
    when: str,
    values: Mapping[str, Any] | None = None,
) -> Update:
    """Returns a user-visible change of an item, as a write or a leg of a transaction.

    item: as it was read, with the vendor, the file, and the assignee that its position in the lists is to have.
    status: the new status; None keeps the current one, and the reason for it. A new one makes the current one part of
    the history. fields: further attributes to set. when, values: the condition.
    """
    former = {"history": to_former(item.history)} if item.history and status is not None else {}
    reasons = dict.fromkeys(_REASONS) if status is not None else {}
    changed = {
        **reasons,
        **former,
        **fields,
        **list_attributes(item.item_id, status, item.runtime_vendor, item.path, item.assignee),
        "version": version,
    }
    change = set_expression(changed)
    if status is not None and "expiresAt" not in changed:
        change += " REMOVE #expiresAt"  # only resolved items expire
    return Update(keys.inbox_item(*item.item_id.location), change, when, {**changed, **(values or {})})


def change_leg(item: InboxItem, wanted: ItemChange, version: str, user_id: str | None) -> Update:
    """Returns a change of an item by a person, if any, on the condition that the item is as it was read.

    version: the new one.
    """
    fields: dict[str, Any] = {}
    if wanted.status is not None:
        fields |= {"statusReason": wanted.reason, "statusBy": user_id, "dismissedUntil": wanted.until}
    assignee = item.assignee
    if wanted.assignee != KEPT:
        assignee = Assignee(wanted.assignee, clock.timestamp()) if wanted.assignee else None
        fields["assignee"] = to_map(assignee) if assignee else None
    return update_leg(
        replace(item, assignee=assignee),
        version,
        wanted.status,
        fields=fields,
        when="#version = :expected",
        values={"expected": item.version},
    )


def reopen(item: InboxItem, until: str) -> list[Entry]:
    """Opens an item whose dismissal ends now. Returns the messages to send. Raises LegFailed if it was changed."""
    wanted = ItemChange("open", "Its dismissal has ended.")
    change = Change(item.item_id, change_leg(item, wanted, new_version(), None), item.status)
    end = Delete(keys.snooze(until, item.item_id))
    return transact_and_tell([change], {"end": end}, _recorded(item, wanted))


def list_attributes(
    item_id: InboxItemId,
    status: Status | None,
    vendor: RuntimeVendor | None,
    path: str | None,
    assignee: Assignee | None,
) -> dict[str, Any]:
    """Returns the attributes for a change now: its time, the index keys, and the new status, if any."""
    now = clock.timestamp()
    attributes: dict[str, Any] = {"updatedAt": now, keys.INBOX.sk: order_of(now, item_id, vendor, path, assignee)}
    if status is not None:
        attributes |= {
            "status": status,
            "statusAt": now,
            keys.INBOX_BY_STATUS.pk: keys.inbox_status_pk(item_id.organization_id, status),
            **(expiry(settings.resolved_item_retention_days) if status == "resolved" else {}),
        }
    return attributes


def order_of(
    updated_at: str,
    item_id: InboxItemId,
    vendor: RuntimeVendor | None,
    path: str | None,
    assignee: Assignee | None,
) -> str:
    """Returns an item's position in the lists, with the vendor of a runtime finding, or the file of a code finding."""
    texts = vendor.to_texts() if vendor else (path,) if path else ()
    assigned = (assignee.user_id, assignee.since) if assignee else ()
    return keys.inbox_order(updated_at, item_id.local, *texts, assignee=assigned)

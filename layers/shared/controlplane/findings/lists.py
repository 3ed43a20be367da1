"""Lists of findings with filters, in the API and on the pages.

The indexes of the inbox know only the status and the time. So a page with other filters reads a bounded part of the
list, most recently updated first, and has what matches in it: fewer items than asked for, or none, although there are
more. The next page goes on after that part.

A list by priority sorts such a part, and returns it page by page before it goes on. Cursors name the bounds of the
part: an item that changes leaves it, and nothing enters it, so every other item is returned exactly once.
"""

from collections.abc import Collection
from typing import Literal, NamedTuple, Self

from controlplane.findings import conversations, inbox
from controlplane.findings.inbox import InboxPage
from controlplane.findings.items import InboxItem, Status

# The assignee of items that have none.
UNASSIGNED = "none"
# A page with filters reads at most this many items of the list.
MOST_READ = 200
# A list by priority sorts this many at once: all findings of a scan.
MOST_SORTED = 500

Sort = Literal["updated", "priority"]


class Wanted(NamedTuple):
    """Filters of a list of findings. An empty text doesn't limit it.

    priority, source, project_id, repository_id, vendor_id: as the items have them. repository_name: likewise, but not
    unique. vendor, text: what a finding contains, in any case. project_ids: the projects that the caller is limited to,
    or None. assignee: the ID of an account, or UNASSIGNED.
    """

    priority: str = ""
    source: str = ""
    project_id: str = ""
    repository_id: str = ""
    vendor_id: str = ""
    repository_name: str = ""
    vendor: str = ""
    text: str = ""
    project_ids: Collection[str] | None = None
    assignee: str = ""

    def matches(self, item: InboxItem) -> bool:
        """Returns whether the list includes the item. Filters by IDs need items that are complete."""
        vendor = item.runtime_vendor
        of_vendor = [vendor.vendor_id, vendor.name, vendor.domain] if vendor else [item.title]
        contained = [item.title, item.summary or "", item.path or "", item.repository_name or "", *of_vendor]
        return (
            self.priority in ("", item.priority)
            and self.source in ("", item.source)
            and self.project_id in ("", item.project_id)
            and (self.project_ids is None or item.project_id in self.project_ids)
            and self.repository_id in ("", item.repository_id)
            and self.vendor_id in ("", vendor.vendor_id if vendor else None, *item.vendor_ids)
            and self.repository_name in ("", item.repository_name)
            and self.assignee in ("", item.assignee.user_id if item.assignee else UNASSIGNED)
            and _contains(of_vendor, self.vendor)
            and all(_contains(contained, word) for word in self.text.split())
        )


def _contains(texts: list[str], wanted: str) -> bool:
    folded = wanted.casefold()
    return not wanted or any(folded in text.casefold() for text in texts)


class Found(NamedTuple):
    """Items that match, the part of the list that was read for them, and where the next page starts, if there is one.

    Those items are complete if a filter by an ID needed that.
    """

    items: list[InboxItem]
    part: InboxPage
    next_position: str | None


def list_complete(
    organization_id: str,
    status: Status | None,
    wanted: Wanted,
    limit: int,
    after: str | None,
    *,
    since: str | None,
    sort: Sort = "updated",
) -> InboxPage:
    """Returns one page of the organization's items that match, in the order, with their vendors.

    since: see `inbox.read_positions`. Without filters, a page in the order of updates reads what it returns. With some,
    it reads up to 200 items of the list, and in a second round trip those items whose repository or vendor the list
    doesn't have.
    """
    most = limit if wanted == Wanted() else None
    found = find(organization_id, status, wanted, limit, after, since=since, sort=sort, most=most)
    return InboxPage(inbox.complete(found.items), found.next_position)


def find(
    organization_id: str,
    status: Status | None,
    wanted: Wanted,
    limit: int,
    after: str | None,
    *,
    since: str | None = None,
    sort: Sort = "updated",
    most: int | None = None,
) -> Found:
    """Returns up to `limit` items that match among the next `most` items (by default 200). Takes one round trip.

    By priority, they are the next ones of a part of up to 500 items. A filter by the ID of a repository or a vendor
    takes a second round trip, for the items that match all other filters, and the part then has up to 200 items. So
    does a filter by the assignee, for the memberships of all assignees.
    """
    if sort == "priority":
        return _find_by_priority(organization_id, status, wanted, limit, after, since=since)
    part = _assigned(inbox.read_positions(organization_id, status, most or MOST_READ, after, since), wanted)
    found = _select(part.items, wanted)
    shown = found[:limit]
    position = inbox.position_of(shown[-1]) if len(found) > len(shown) else part.next_position
    return Found(shown, part, position)


class _Sorted(NamedTuple):
    """A part of the list that is sorted by priority: its bounds, and the last item that was returned of it.

    before: the end of the part before, or a position that only later changes exceed. end: the position of the part's
    last item, or empty if no item follows it. rank, last: empty if no item was returned yet.
    """

    before: str | None = None
    end: str = ""
    rank: str = ""
    last: str = ""

    @classmethod
    def read(cls, after: str | None) -> Self:
        return cls(*after.split("|")) if after else cls()

    def position_after(self, item: InboxItem) -> str:
        return "|".join((self.before or "", self.end, _rank(item), inbox.position_of(item)))

    def is_left(self, item: InboxItem) -> bool:
        """Returns whether the item follows the one that was returned last."""
        rank = _rank(item)
        return (rank, self.last) > (self.rank, inbox.position_of(item))


def _rank(item: InboxItem) -> str:
    return item.priority or "none"


def _find_by_priority(
    organization_id: str, status: Status | None, wanted: Wanted, limit: int, after: str | None, *, since: str | None
) -> Found:
    part = _Sorted.read(after)
    most = MOST_READ if wanted.repository_id or wanted.vendor_id else MOST_SORTED
    read = _assigned(inbox.read_positions(organization_id, status, most, part.before, part.end or since), wanted)
    if not part.rank:  # the part's first page
        newest = inbox.position_of(read.items[0]) + "~" if read.items else None
        part = _Sorted(part.before or newest, read.next_position or "")
    left = [item for item in sorted(_select(read.items, wanted), key=_rank) if part.is_left(item)]
    shown = left[:limit]
    position = part.position_after(shown[-1]) if len(left) > limit else part.end or None
    return Found(shown, read, position)


def _assigned(part: InboxPage, wanted: Wanted) -> InboxPage:
    """Returns the part without assignees who have left, if the filter concerns assignees."""
    return part._replace(items=conversations.with_assignees(part.items)) if wanted.assignee else part


def _select(items: list[InboxItem], wanted: Wanted) -> list[InboxItem]:
    """Returns the items that match. Completes them if a filter by an ID needs that."""
    if wanted.repository_id or wanted.vendor_id:
        otherwise = wanted._replace(repository_id="", vendor_id="")
        items = [item for item in items if otherwise.matches(item) and _may_match(item, wanted)]
        items = inbox.complete(items, with_code=True)
    return [item for item in items if wanted.matches(item)]


def _may_match(item: InboxItem, wanted: Wanted) -> bool:
    """Returns whether an item of a list may have the wanted repository or vendor. The list doesn't have all of both."""
    if wanted.repository_id and item.repository_name is None:
        return False
    if wanted.vendor_id:
        vendor = item.runtime_vendor
        return item.source == "code-audit" or (
            item.source == "runtime" and (vendor is None or vendor.vendor_id == wanted.vendor_id)
        )
    return True

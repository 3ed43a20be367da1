"""Lists of findings with filters, in the API and on the pages.

The indexes of the inbox know only the status and the time. So a page with other filters reads a bounded part of the
list, most recently updated first, and has what matches in it: fewer items than asked for, or none, although there are
more. The next page goes on after that part.
"""

from collections.abc import Collection
from typing import NamedTuple

from controlplane.findings import conversations, inbox
from controlplane.findings.inbox import InboxPage
from controlplane.findings.items import InboxItem, Status

# The assignee of items that have none.
UNASSIGNED = "none"
# A page with filters reads at most this many items of the list.
MOST_READ = 200


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
    organization_id: str, status: Status | None, wanted: Wanted, limit: int, after: str | None, *, since: str | None
) -> InboxPage:
    """Returns one page of the organization's items that match, most recently updated first, with their vendors.

    since: see `inbox.read_positions`. Without filters, a page reads what it returns. With some, it reads up to 200
    items of the list, and in a second round trip those items whose repository or vendor the list doesn't have.
    """
    most = limit if wanted == Wanted() else None
    found = find(organization_id, status, wanted, limit, after, since=since, most=most)
    return InboxPage(inbox.complete(found.items), found.next_position)


def find(
    organization_id: str,
    status: Status | None,
    wanted: Wanted,
    limit: int,
    after: str | None,
    *,
    since: str | None = None,
    most: int | None = None,
) -> Found:
    """Returns up to `limit` items that match among the next `most` items (by default 200). Takes one round trip.

    A filter by the ID of a repository or a vendor takes a second one, for the items that match all other filters, and a
    filter by the assignee one for the memberships of all assignees.
    """
    part = inbox.read_positions(organization_id, status, most or MOST_READ, after, since)
    if wanted.assignee:
        part = part._replace(items=conversations.with_assignees(part.items))
    candidates = part.items
    if wanted.repository_id or wanted.vendor_id:
        otherwise = wanted._replace(repository_id="", vendor_id="")
        candidates = [item for item in candidates if otherwise.matches(item) and _may_match(item, wanted)]
        candidates = inbox.complete(candidates, with_code=True)
    found = [item for item in candidates if wanted.matches(item)]
    shown = found[:limit]
    position = inbox.position_of(shown[-1]) if len(found) > len(shown) else part.next_position
    return Found(shown, part, position)


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

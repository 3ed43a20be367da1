"""Business rules of the inbox's pages: the list with its filters, and an item with its related records.

A page reads a bounded part of the list, most recently updated first, and shows what matches the filters in it. The next
page goes on after that, so a search goes back in time page by page, and never reads a whole inbox at once.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast, get_args
from urllib.parse import urlencode

from controlplane.code_host import repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.findings import inbox, issue_attempts, vendors
from controlplane.findings import lists as inbox_lists
from controlplane.findings.issue_attempts import IssueProgress
from controlplane.findings.items import InboxItem, Source
from controlplane.findings.lists import Wanted
from controlplane.findings.status_history import Status, StatusChange
from controlplane.findings.vendors import VendorItem
from controlplane.organizations import members
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core import keyring
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import InboxItemId, ProjectId, RepositoryId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.table.parallel import read_each
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from dashboard.organizations import get_organization
from dashboard.repositories import list_choices

ITEMS_PER_PAGE = 50
# The number of items in a status is counted up to this.
MOST_COUNTED = 50
# The name of a person who isn't a member anymore.
FORMER_MEMBER = "A former member"
_PROJECTS = 100
_TEXT_LENGTH = 200

STATUSES, PRIORITIES, SOURCES = get_args(Status), get_args(Priority), get_args(Source)
# The value of the status filter that selects all.
ALL = "all"


class NoItem(NotFound):
    message = "This finding doesn't exist, or you aren't a member of its organization."


class Filters(NamedTuple):
    """The filters of a list of findings. An empty text doesn't limit it.

    status: one of the statuses, or `all`. project: an ID. repository: a name. vendor, text: what a finding contains.
    """

    status: str = "open"
    priority: str = ""
    source: str = ""
    project: str = ""
    repository: str = ""
    vendor: str = ""
    text: str = ""

    @classmethod
    def read(cls, values: Mapping[str, str | None]) -> "Filters":
        """Returns the filters of a query. An unknown status, priority, or source doesn't limit the list."""
        given = {name: (values.get(name) or "").strip()[:_TEXT_LENGTH] for name in cls._fields}
        return cls(**given)._replace(
            status=given["status"] if given["status"] in (*STATUSES, ALL) else "open",
            priority=given["priority"] if given["priority"] in PRIORITIES else "",
            source=given["source"] if given["source"] in SOURCES else "",
        )

    @property
    def known_status(self) -> Status | None:
        return None if self.status == ALL else cast("Status", self.status)

    @property
    def wanted(self) -> Wanted:
        """The filters, except for the status, as lists of findings understand them."""
        return Wanted(
            priority=self.priority,
            source=self.source,
            project_id=self.project,
            repository_name=self.repository,
            vendor=self.vendor,
            text=self.text,
        )

    @property
    def is_narrow(self) -> bool:
        """True if anything but the status limits the list."""
        return self._replace(status="open") != Filters()

    def query(self, **changes: str) -> str:
        """Returns the filters as a query, with changes, or an empty text if all are the defaults."""
        wanted = {**self._asdict(), **changes}
        pairs = {name: value for name, value in wanted.items() if value and value != self._field_defaults.get(name)}
        return f"?{urlencode(pairs)}" if pairs else ""


class Count(NamedTuple):
    """A number of findings, or the least that it can be."""

    number: int
    is_exact: bool

    def __str__(self) -> str:
        return f"{self.number}{'' if self.is_exact else '+'}"


class ShownInbox(NamedTuple):
    """One page of an organization's inbox.

    statuses: the number of items in each status, up to a limit. priorities: that of the items that were read for this
    page and match all other filters. read: how many were read. cursor: of the next page, or None on the last one.
    names: those of the people asked for, by user ID.
    """

    organization: Membership
    filters: Filters
    items: list[InboxItem]
    statuses: dict[str, Count]
    priorities: dict[str, Count]
    read: int
    cursor: str | None
    projects: list[ProjectItem]
    repositories: list[str]
    names: dict[str, str]


def list_inbox(
    organization: Membership, filters: Filters, cursor: str | None, people: Sequence[str] = ()
) -> ShownInbox:
    """Returns the page after the cursor, in one round trip. Raises InvalidPayload for another list's cursor.

    people: IDs of users whose names the page shows.
    """
    organization_id = organization.organization_id
    binding = ("showInbox", organization_id, *filters)
    after = keyring.open_cursor(binding, cursor) if cursor else None
    reads: list[Callable[[], Any]] = [
        lambda: inbox_lists.find(organization_id, filters.known_status, filters.wanted, ITEMS_PER_PAGE, after),
        lambda: projects.list_projects(organization_id, _PROJECTS, None).projects,
        lambda: list_choices(organization_id),
        lambda: members.find_names(organization_id, people),
        *(_counting(organization_id, status) for status in STATUSES),
    ]
    found, own_projects, own_repositories, names, *counts = read_each(lambda read: read(), reads)
    return ShownInbox(
        organization=organization,
        filters=filters,
        items=found.items,
        statuses={
            status: Count(min(number, MOST_COUNTED), number <= MOST_COUNTED)
            for status, number in zip(STATUSES, counts, strict=True)
        },
        priorities=_count_priorities(found.part, filters, is_first=after is None),
        read=len(found.part.items),
        cursor=keyring.seal_cursor(binding, found.next_position) if found.next_position else None,
        projects=own_projects,
        repositories=sorted({repository.name for repository in own_repositories}),
        names=names,
    )


def _counting(organization_id: str, status: Status) -> Callable[[], int]:
    return lambda: inbox.count_items(organization_id, status, MOST_COUNTED + 1)


def _count_priorities(page: inbox.InboxPage, filters: Filters, *, is_first: bool) -> dict[str, Count]:
    any_priority = filters.wanted._replace(priority="")
    counted = Counter(item.priority for item in page.items if any_priority.matches(item))
    return {it: Count(counted[it], is_first and page.next_position is None) for it in PRIORITIES}


class FoundItem(NamedTuple):
    """An item of one of the user's organizations, and the state of its issue."""

    organization: Membership
    progress: IssueProgress

    @property
    def item(self) -> InboxItem:
        return self.progress.item


def get_item(organization_slug: str, item_id: str, account: Account) -> FoundItem:
    """Returns an item of one of the account's organizations, in one round trip. Raises NotMember, NoItem."""
    organization, own_id = get_organization(organization_slug, account), InboxItemId.parse(item_id)
    progress = issue_attempts.find_progress(own_id) if own_id else None
    if progress is None or progress.item.organization_id != organization.organization_id:
        raise NoItem
    return FoundItem(organization, progress)


class ShownItem(NamedTuple):
    """An item with its related records. project, repository: None if it has none, or if it was deleted.

    vendor: that of a runtime finding. names: the names of members who changed the item, by user ID.
    """

    organization: Membership
    progress: IssueProgress
    item: InboxItem
    project: ProjectItem | None
    repository: RepositoryItem | None
    vendor: VendorItem | None
    names: dict[str, str]


def get_shown(found: FoundItem) -> ShownItem:
    """Returns the item with its related records, in one more round trip."""
    item = found.item
    people = [change.by for change in item.history if change.by]
    reads: list[Callable[[], Any]] = [
        lambda: projects.find_project(ProjectId.stored(item.project_id)) if item.project_id else None,
        lambda: _find_repository(item.repository_id),
        lambda: _find_vendor(item),
        lambda: members.find_names(item.organization_id, people),
    ]
    project, repository, vendor, names = read_each(lambda read: read(), reads)
    return ShownItem(found.organization, found.progress, item, project, repository, vendor, names)


class Event(NamedTuple):
    """Something that happened to an item. who: the name of the person who did it, or None if no person did."""

    at: str
    what: str
    who: str | None = None
    reason: str | None = None
    scan_id: str | None = None


_DECIDED = {
    "open": "reopened this finding",
    "accepted": "accepted this finding",
    "dismissed": "dismissed this finding",
    "resolved": "resolved this finding",
}


def list_events(shown: ShownItem) -> list[Event]:
    """Returns the item's history, newest first: its statuses, its issue, and the decision about its vendor."""
    item, vendor = shown.item, shown.vendor
    events = [_event_of(change, shown.names, is_first=position == 0) for position, change in enumerate(item.history)]
    if item.github_issue is not None:
        events.append(Event(item.github_issue.created_at, f"Issue #{item.github_issue.number} was opened"))
    if vendor is not None and vendor.state is not None and vendor.decided_at is not None:
        who = shown.names.get(vendor.decided_by or "")
        what = f"{vendor.state} the vendor" if who else f"The vendor was {vendor.state}"
        events.append(Event(vendor.decided_at, what, who))
    return sorted(events, key=lambda event: event.at, reverse=True)


def _event_of(change: StatusChange, names: Mapping[str, str], *, is_first: bool) -> Event:
    if change.by is not None:
        return Event(change.at, _DECIDED[change.status], names.get(change.by, FORMER_MEMBER), change.reason)
    if change.status == "resolved":
        what = "A scan resolved this finding" if change.scan_id else "A decision about its vendor resolved this finding"
        return Event(change.at, what, None, change.reason, change.scan_id)
    return Event(change.at, "The finding was found" if is_first else "The finding was found again")


def _find_repository(repository_id: RepositoryId | None) -> RepositoryItem | None:
    return repositories.find_repository(repository_id) if repository_id else None


def _find_vendor(item: InboxItem) -> VendorItem | None:
    vendor = item.runtime_vendor
    return vendors.find_vendor(ProjectId.stored(vendor.project_id), vendor.vendor_id) if vendor else None

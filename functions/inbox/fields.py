"""The resource of the routes of `inbox`, and its assignee as a caller may see it."""

from typing import Any

from controlplane.access.access import Access, Resource
from controlplane.findings import conversations
from controlplane.findings.items import InboxItem
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.table import keys

ITEM = Resource(
    "itemId",
    InboxItemId,
    keys.inbox_item,
    InboxItem.from_item,
    project_of=lambda item: item.project_id,
)


def with_assignees(access: Access[Any], *items: InboxItem) -> list[InboxItem]:
    """Returns the items with their assignees, as the caller may see them."""
    return conversations.with_assignees(items, named=sees_names(access))


def sees_names(access: Access[Any]) -> bool:
    return "members.read" in access.principal.scopes

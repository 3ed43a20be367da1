"""Issues at the code host that were opened for inbox items: the item of each, and whether it is closed."""

from contextlib import suppress

from controlplane.core.ids import InboxItemId, RepositoryId
from controlplane.store import keys
from controlplane.store.table import ConditionFailed, Leg, Put, Update, table


def legs(repository_id: RepositoryId | None, number: int, item_id: InboxItemId) -> dict[str, Leg]:
    """Returns the leg that makes the issue lead to its item."""
    if repository_id is None:
        return {}
    return {"issue": Put({**keys.opened_issue(repository_id, number)._asdict(), "itemId": item_id})}


def find_item(repository_id: RepositoryId, number: int) -> InboxItemId | None:
    """Returns the item that the issue was opened for, or None: most issues weren't."""
    item = table.get(keys.opened_issue(repository_id, number))
    return InboxItemId.stored(item["itemId"]) if item else None


def record_state(item_id: InboxItemId, number: int, *, is_open: bool) -> None:
    """Records in the item whether its issue is open. Does nothing if the item has another issue or was deleted.

    The item's status doesn't change: the next scan decides whether the finding is gone.
    """
    values = {"number": number, "state": "open" if is_open else "closed"}
    change = Update(
        keys.inbox_item(*item_id.location),
        "SET #githubIssue.#state = :state",
        "#githubIssue.#number = :number",
        values,
    )
    with suppress(ConditionFailed):
        table.update(change)

"""Issues at the code host that were opened for inbox items or linked to them: the items of each, and its state."""

from contextlib import suppress

from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import InboxItemId, RepositoryId
from controlplane.platform.table import keys
from controlplane.platform.table.table import Leg, LegFailed, Put, Recorded, Update, table


def legs(repository_id: RepositoryId | None, number: int, item_id: InboxItemId) -> dict[str, Leg]:
    """Returns the leg that makes the issue lead to its item."""
    if repository_id is None:
        return {}
    return {"issue": Put({**keys.opened_issue(repository_id, number, item_id.local)._asdict(), "itemId": item_id})}


def find_items(repository_id: RepositoryId, number: int) -> list[InboxItemId]:
    """Returns the items that have the issue: none for most issues. Consistent."""
    pk = keys.finding_history_pk(repository_id)
    page = table.query(pk, prefix=keys.opened_issue_prefix(number), consistent=True)
    return [InboxItemId.stored(item["itemId"]) for item in page.items]


def record_state(item_id: InboxItemId, number: int, *, is_open: bool) -> None:
    """Records in the item whether its issue is open. Does nothing if it has another issue or was deleted.

    Nor if it says so already. The item's status doesn't change: the next scan decides whether the finding is gone.
    """
    before, after = ("closed", "open") if is_open else ("open", "closed")
    # An open issue has no state until it was closed once.
    unset = "" if is_open else "attribute_not_exists(#githubIssue.#state) OR "
    change = Update(
        keys.inbox_item(*item_id.location),
        "SET #githubIssue.#state = :after",
        f"#githubIssue.#number = :number AND ({unset}#githubIssue.#state = :before)",
        {"number": number, "before": before, "after": after},
    )
    record = Recorded(
        Action.ISSUE_CHANGE_STATE,
        item_id.organization_id,
        item_id,
        before={"state": before},
        after={"state": after},
    )
    with suppress(LegFailed):
        table.transact({"item": change}, record)

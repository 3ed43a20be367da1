"""Issues at the code host that were opened for inbox items or linked to them: the items of each, and its state."""

from contextlib import suppress

from controlplane.core.actions import Action
from controlplane.core.ids import InboxItemId, RepositoryId
from controlplane.store import keys
from controlplane.store.outbox import Entry
from controlplane.store.table import Check, Leg, LegFailed, Put, Recorded, Unrecorded, Update, table


def legs(repository_id: RepositoryId | None, number: int, item_id: InboxItemId) -> dict[str, Leg]:
    """Returns the leg that makes the issue lead to its item."""
    return {} if repository_id is None else {"issue": _entry(repository_id, number, item_id)}


def _entry(repository_id: RepositoryId, number: int, item_id: InboxItemId) -> Put:
    return Put({**keys.opened_issue(repository_id, number, item_id.local)._asdict(), "itemId": item_id})


def index(repository_id: RepositoryId, number: int, item_id: InboxItemId, message: Entry | None) -> bool:
    """Makes an issue that an older release recorded lead to its item, with a message to read the issue's state.

    Returns False if it did before.
    """
    if item_id in find_items(repository_id, number):
        return False
    has_issue = Check(keys.inbox_item(*item_id.location), "#githubIssue.#number = :number", {"number": number})
    legs: dict[str, Leg] = {"item": has_issue, "issue": _entry(repository_id, number, item_id)}
    try:
        table.transact(legs if message is None else {**legs, "message": message.leg}, Unrecorded.BACKFILL)
    except LegFailed:  # the item was deleted since it was read
        return False
    return True


def find_items(repository_id: RepositoryId, number: int) -> list[InboxItemId]:
    """Returns the items that have the issue: none for most issues. Consistent."""
    pk = keys.finding_history_pk(repository_id)
    page = table.query(pk, prefix=keys.opened_issue_prefix(number), consistent=True)
    return [*dict.fromkeys(InboxItemId.stored(item["itemId"]) for item in page.items)]


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

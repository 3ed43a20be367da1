"""Changes of many findings at once: each is a change of its own, with its own outcome.

In one transaction, one stale version would undo the others. A repeated change recognizes itself, so repeating all of
them after a failure completes them.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from controlplane.findings.inbox import StaleVersion, UnknownItem, get_item
from controlplane.findings.items import InboxItem
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.table.parallel import read_each


class Outcome(NamedTuple):
    """The result for one finding. item: as it is now, or None if it doesn't exist anymore. failure: why it was kept.

    is_changed: False if it had the wanted status before, so that there is nothing to undo.
    """

    item: InboxItem | None
    failure: ApiError | None = None
    is_changed: bool = False


def change_each(
    versions: Mapping[InboxItemId, str],
    items: Mapping[str, InboxItem],
    change: Callable[[InboxItem, str], InboxItem],
) -> list[Outcome]:
    """Changes each item that still has its version. Each has its own outcome, in the same order.

    items: those that exist, by ID. change: changes an item with a version in a transaction of its own. It raises
    StaleVersion, UnknownItem, or another ApiError. A failure of the table is raised after all others have ended:
    repeating the changes completes them, because each recognizes its own.
    """

    def change_one(item_id: InboxItemId) -> Outcome:
        item, version = items.get(item_id), versions[item_id]
        if item is None:
            return Outcome(None, UnknownItem())
        try:
            changed = change(item, version)
            return Outcome(changed, is_changed=changed.version != version)
        except StaleVersion as failure:
            # It changed before it was read, or after that.
            return Outcome(item if item.version != version else get_item(item_id), failure)
        except UnknownItem as failure:
            return Outcome(None, failure)
        except ApiError as failure:
            return Outcome(item, failure)

    return read_each(change_one, versions)

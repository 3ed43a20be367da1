"""The last migration: gives each older item the current schema version, once all others have completed what it lacked.

A release that increments the version adds its own migration before this one.
"""

from typing import Any

from controlplane.core import clock
from controlplane.store import keys, schema
from controlplane.store.table import ConditionFailed, Unrecorded, Update, table
from ops import backfill

_OLDER = f"(attribute_not_exists(#{schema.ATTRIBUTE}) OR #{schema.ATTRIBUTE} < :{schema.ATTRIBUTE})"
# DynamoDB deletes an expired item within two days. What is gone by then isn't worth a write.
_LASTING = "(attribute_not_exists(#expiresAt) OR #expiresAt > :soon)"
_SOON_SECONDS = 2 * 86_400


def run(*, again: bool = False) -> dict[str, Any]:
    """Marks older items. Returns the numbers of items read and marked, and when it finished.

    again: starts over, for example after a rollback to an older release.
    """
    values = {schema.ATTRIBUTE: schema.VERSION, "soon": int(clock.now()) + _SOON_SECONDS}
    progress = keys.schema_migration(schema.VERSION)
    outcome = backfill.run(progress, f"{_OLDER} AND {_LASTING}", values, _mark, again=again)
    return {"completedAt": outcome.completed_at, "read": outcome.read, "marked": outcome.changed}


def _mark(item: dict[str, Any]) -> bool:
    """Returns False if the item was written by this release, or deleted, since it was read."""
    name = schema.ATTRIBUTE
    change, when = f"SET #{name} = :{name}", f"attribute_exists(pk) AND {_OLDER}"
    marking = Update(keys.Key(item["pk"], item["sk"]), change, when, {name: schema.VERSION})
    try:
        table.update(marking, Unrecorded.BACKFILL)
    except ConditionFailed:
        return False
    return True

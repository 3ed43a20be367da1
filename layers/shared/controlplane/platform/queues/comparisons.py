"""Which repositories the sweep is to compare with the list of advisories."""

from controlplane.platform.core import ids
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put


def due_leg(repository_id: str) -> Put:
    """Returns the leg that makes the repository due, also if it is being compared right now."""
    return Put({**keys.due_comparison(repository_id)._asdict(), "change": ids.new_local()})

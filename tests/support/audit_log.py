"""The entries of an audit log as stored."""

from typing import Any

from controlplane.platform.table import keys
from controlplane.platform.table.legs import decode_item
from tests.support.world import table_dump


def all_entries() -> list[dict[str, Any]]:
    """Returns the entries of all organizations."""
    items = [decode_item(item) for item in table_dump() if item["pk"]["S"].startswith(keys.LOG_PREFIX)]
    return sorted(items, key=lambda item: item["sk"])

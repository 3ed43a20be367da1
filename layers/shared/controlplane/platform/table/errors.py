"""Failures of calls to the table. They are internal: clients get the errors of `controlplane.platform.core.errors`."""

from typing import Any


class StoreError(Exception):
    """The base class of errors raised by the store."""


class Throttled(StoreError):
    """The table, or one of its items, is throttled or contended."""


class TableUnavailable(StoreError):
    """The table timed out or failed, and no retries or no time is left.

    A write may or may not have been applied.
    """


class ConditionFailed(StoreError):
    """The condition was false. `item` is the existing item, or None if it doesn't exist."""

    def __init__(self, item: dict[str, Any] | None) -> None:
        super().__init__("condition failed")
        self.item = item


class LegFailed(StoreError):
    """A transaction's conditions failed. `leg` names the first failed leg; `items` has each failed leg's item."""

    def __init__(self, items: dict[str, dict[str, Any] | None]) -> None:
        super().__init__("conditions failed: " + ", ".join(items))
        self.items = items
        self.leg = next(iter(items))

    @property
    def item(self) -> dict[str, Any] | None:
        return self.items[self.leg]

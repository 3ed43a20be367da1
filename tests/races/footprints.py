"""Tells which calls to DynamoDB can't affect each other, from what they read and write.

A place is the beginning of an item's key: (partition key, sort key) is an item, (partition key,) all items of a
partition, and () all items of the table, which a query of an index may read.
"""

from dataclasses import dataclass
from typing import Self

from tests.support.calls import Call, item_of, parts_of

type Place = tuple[str, ...]

_READS = {"GetItem", "BatchGetItem", "ConditionCheckItem"}


@dataclass(frozen=True)
class Footprint:
    """The places that are read, and the items that are written. What is written counts as read, too."""

    reads: frozenset[Place] = frozenset()
    writes: frozenset[Place] = frozenset()

    @classmethod
    def of(cls, call: Call) -> Self:
        reads, writes = set[Place](), set[Place]()
        for operation, _, part in parts_of(call.operation, call.parameters):
            if operation == "Query" and "IndexName" not in part:
                reads.add((part["ExpressionAttributeValues"][":pk"]["S"],))
            elif operation in {"Query", "Scan"}:
                reads.add(())
            else:
                (reads if operation in _READS else writes).add(item_of(part))
        return cls(frozenset(reads), frozenset(writes))

    def __or__(self, other: Self) -> Self:
        return type(self)(self.reads | other.reads, self.writes | other.writes)

    def conflicts(self, other: Self) -> bool:
        """Returns whether the order of the two matters: one of them writes what the other one reads or writes."""
        return (
            not self.writes.isdisjoint(other.writes)
            or any(_are_in(self.writes, place) for place in other.reads)
            or any(_are_in(other.writes, place) for place in self.reads)
        )


def _are_in(items: frozenset[Place], place: Place) -> bool:
    return any(item[: len(place)] == place for item in items)

"""Tells which calls to DynamoDB can't affect each other, from what they read and write.

A place is the beginning of an item's key: (partition key, sort key) is an item, (partition key,) all items of a
partition, and () all items of the table, which a query of an index may read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from tests.support.calls import Call, item_of

type Place = tuple[str, ...]


@dataclass(frozen=True)
class Footprint:
    """The places that are read, and the items that are written. What is written counts as read, too."""

    reads: frozenset[Place] = frozenset()
    writes: frozenset[Place] = frozenset()

    @classmethod
    def of(cls, call: Call) -> Self:
        """Raises KeyError for an operation that the product doesn't use."""
        reads, writes = _PLACES[call.operation](call.parameters)
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


def _written(parameters: dict[str, Any]) -> tuple[list[Place], list[Place]]:
    return [], [item_of(parameters)]


def _queried(parameters: dict[str, Any]) -> tuple[list[Place], list[Place]]:
    return [() if "IndexName" in parameters else (parameters["ExpressionAttributeValues"][":pk"]["S"],)], []


def _of_legs(parameters: dict[str, Any]) -> tuple[list[Place], list[Place]]:
    legs = [(kind, item_of(leg)) for entry in parameters["TransactItems"] for kind, leg in entry.items()]
    checked: list[Place] = [item for kind, item in legs if kind == "ConditionCheck"]
    return checked, [item for kind, item in legs if kind != "ConditionCheck"]


def _batched(parameters: dict[str, Any]) -> Iterator[Place]:
    for given in parameters["RequestItems"].values():
        if isinstance(given, dict):
            yield from (item_of({"Key": key}) for key in given["Keys"])
        else:
            yield from (item_of(request) for entry in given for request in entry.values())


_PLACES: Final[dict[str, Callable[[dict[str, Any]], tuple[Any, Any]]]] = {
    "GetItem": lambda parameters: ([item_of(parameters)], []),
    "BatchGetItem": lambda parameters: (_batched(parameters), []),
    "Query": _queried,
    "Scan": lambda parameters: ([()], []),
    "PutItem": _written,
    "UpdateItem": _written,
    "DeleteItem": _written,
    "BatchWriteItem": lambda parameters: ([], _batched(parameters)),
    "TransactWriteItems": _of_legs,
}

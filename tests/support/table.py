"""Creates the table of template.yaml on any engine: one for races, or moto."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any

from controlplane.platform.table.table import Unrecorded, table
from local.template import load_template

# The table properties that CreateTable accepts. TTL stays off: AWS deletes days late, so no test may rely on it.
_CREATED_WITH = (
    "AttributeDefinitions",
    "KeySchema",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
)

# Items that a test stores directly have no entry in the audit log.
PREPARED = Unrecorded.REWRITE

_READY_SECONDS = 20
_WRITTEN_AT_ONCE = 25
_NUMBERS = count(1)

type Items = dict[tuple[str, str], dict[str, Any]]


@cache
def table_properties() -> dict[str, Any]:
    """Returns the properties of the template's `Table` that CreateTable accepts."""
    properties = load_template()["Resources"]["Table"]["Properties"]
    return {name: properties[name] for name in _CREATED_WITH if name in properties}


def create_table(client: Any, name: str) -> None:
    """Creates the template's table under this name, empty and ready."""
    client.create_table(TableName=name, **table_properties())
    until = time.monotonic() + _READY_SECONDS
    while (status := client.describe_table(TableName=name)["Table"]["TableStatus"]) != "ACTIVE":
        assert time.monotonic() < until, f"the table is {status}"
        time.sleep(0.005)


def stored_items(client: Any, name: str) -> Items:
    """Returns all items of the table as they are stored, by their keys."""
    items: Items = {}
    position: dict[str, Any] = {}
    while True:
        page = client.scan(TableName=name, ConsistentRead=True, **position)
        items |= {(item["pk"]["S"], item["sk"]["S"]): item for item in page["Items"]}
        if "LastEvaluatedKey" not in page:
            return items
        position = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def restore_items(client: Any, name: str, items: Items) -> None:
    """Makes these the table's only items. Writes only those that differ."""
    present = stored_items(client, name)
    requests: list[dict[str, Any]] = [
        {"DeleteRequest": {"Key": {"pk": item["pk"], "sk": item["sk"]}}}
        for key, item in present.items()
        if key not in items
    ]
    requests += [{"PutRequest": {"Item": item}} for key, item in items.items() if present.get(key) != item]
    for start in range(0, len(requests), _WRITTEN_AT_ONCE):
        answer = client.batch_write_item(RequestItems={name: requests[start : start + _WRITTEN_AT_ONCE]})
        assert not answer.get("UnprocessedItems"), "the engine has no limits"


@contextmanager
def own_table() -> Iterator[None]:
    """While open, the product uses an empty table of its own. For one of many cases in a test."""
    before, table.name = table.name, f"own-{next(_NUMBERS)}"
    try:
        create_table(table.client, table.name)
        try:
            yield
        finally:  # a case that fails must not leave its table, nor that table's late copy, to later tests
            table.client.delete_table(TableName=table.name)
    finally:
        table.name = before


@contextmanager
def restored() -> Iterator[None]:
    """Undoes what the block changes in the table. For one of many cases in a test."""
    items = stored_items(table.client, table.name)
    try:
        yield
    finally:
        restore_items(table.client, table.name, items)

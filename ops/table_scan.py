"""Reads the whole table, for commands that look for items which no key or index finds. Requests never do this."""

from collections.abc import Iterator
from typing import Any

from controlplane.platform.table.legs import decode_item
from controlplane.platform.table.table import table


def scan() -> Iterator[dict[str, Any]]:
    """Yields every item, with consistent reads. Finds everything written before the scan began."""
    parameters: dict[str, Any] = {"TableName": table.name, "ConsistentRead": True}
    while True:
        answer = table.client.scan(**parameters)
        yield from map(decode_item, answer["Items"])
        if "LastEvaluatedKey" not in answer:
            return
        parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

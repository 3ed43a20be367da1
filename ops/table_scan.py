"""Reads the whole table, for commands that look for items which no key or index finds. Requests never do this."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from controlplane.store import codec
from controlplane.store.table import table

_NAME = re.compile(r"#(\w+)")


class Page(NamedTuple):
    items: list[dict[str, Any]]
    # The key to resume after, or None on the last page.
    position: dict[str, str] | None


def scan(condition: str | None = None, values: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """Yields the items that meet the condition. Finds everything written before the scan began."""
    for page in scan_pages(condition, values):
        yield from page.items


def scan_pages(
    condition: str | None = None, values: Mapping[str, Any] | None = None, *, after: Mapping[str, str] | None = None
) -> Iterator[Page]:
    """Yields the pages of a consistent scan, which may be empty. `after` resumes at the position of an earlier page.

    condition: a filter in which `#name` is the attribute of that name, and `:name` the value of that name.
    """
    parameters: dict[str, Any] = {"TableName": table.name, "ConsistentRead": True}
    if condition:
        parameters |= {
            "FilterExpression": condition,
            "ExpressionAttributeNames": {f"#{name}": name for name in _NAME.findall(condition)},
            "ExpressionAttributeValues": {f":{name}": codec.encode(value) for name, value in (values or {}).items()},
        }
    last = codec.encode_item(dict(after)) if after else None
    while True:
        if last:
            parameters["ExclusiveStartKey"] = last
        answer = table.client.scan(**parameters)
        last = answer.get("LastEvaluatedKey")
        yield Page([codec.decode_item(item) for item in answer["Items"]], codec.decode_item(last) if last else None)
        if not last:
            return

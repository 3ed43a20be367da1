"""Creates the table of template.yaml on any engine: one for races, or moto."""

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from local.template import TEMPLATE, load_template

# The table properties that CreateTable accepts. TTL stays off: AWS deletes days late, so no test may rely on it.
_CREATED_WITH = (
    "AttributeDefinitions",
    "KeySchema",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
)

_READY_SECONDS = 20


@lru_cache
def table_properties(template: Path = TEMPLATE) -> dict[str, Any]:
    """Returns the properties of the template's `Table` that CreateTable accepts."""
    properties = load_template(template)["Resources"]["Table"]["Properties"]
    return {name: properties[name] for name in _CREATED_WITH if name in properties}


def create_table(client: Any, name: str) -> None:
    """Creates the template's table under this name, empty and ready."""
    status = client.create_table(TableName=name, **table_properties())["TableDescription"]["TableStatus"]
    until = time.monotonic() + _READY_SECONDS
    while status != "ACTIVE":
        assert time.monotonic() < until, f"the table is {status}"
        time.sleep(0.1)
        status = client.describe_table(TableName=name)["Table"]["TableStatus"]

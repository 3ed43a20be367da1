"""The table of template.yaml, made anywhere: on an engine for races, or on moto."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from local.template import TEMPLATE, load_template

# What CreateTable takes of a table's properties. TTL stays off: AWS deletes days late, so no test may lean on it.
_CREATED_WITH = (
    "AttributeDefinitions",
    "KeySchema",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
)


@lru_cache
def table_properties(template: Path = TEMPLATE) -> dict[str, Any]:
    """The properties of the template's `Table` that CreateTable takes."""
    properties = load_template(template)["Resources"]["Table"]["Properties"]
    return {name: properties[name] for name in _CREATED_WITH if name in properties}


def create_table(client: Any, name: str) -> None:
    """Creates the template's table under this name, empty and ready."""
    made = client.create_table(TableName=name, **table_properties())["TableDescription"]
    if made["TableStatus"] != "ACTIVE":
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 20})

"""The table of template.yaml, made anywhere: on an engine for races, or on moto."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
# What CreateTable takes of a table's properties. TTL stays off: AWS deletes days late, so no test may lean on it.
_CREATED_WITH = (
    "AttributeDefinitions",
    "KeySchema",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
)


class Intrinsic:
    """A function of CloudFormation, such as `!Ref`: only a deployment knows its value."""


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's YAML without resolving its functions."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: Intrinsic())


@lru_cache
def table_properties(template: Path = TEMPLATE) -> dict[str, Any]:
    """The properties of the template's `Table` that CreateTable takes."""
    resource = yaml.load(template.read_text(), _Loader)["Resources"]["Table"]
    return {name: resource["Properties"][name] for name in _CREATED_WITH if name in resource["Properties"]}


def create_table(client: Any, name: str, template: Path = TEMPLATE) -> None:
    """Creates the template's table under this name, empty and ready."""
    client.create_table(TableName=name, **table_properties(template))
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 20})

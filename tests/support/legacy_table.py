"""Puts the table into the state that a release without the credential index, or versions of items, would have left."""

from collections.abc import Iterable

from controlplane.store import schema
from controlplane.store.table import table


def keep_only(prefixes: Iterable[str]) -> None:
    """Deletes credentials without these partition key prefixes, so that a scan finds the rest in a fixed order."""
    for item in table.client.scan(TableName=table.name, ConsistentRead=True)["Items"]:
        pk = item["pk"]["S"]
        if pk.startswith(("TH#", "FAMILY#", "DC#")) and not pk.startswith(tuple(prefixes)):
            table.client.delete_item(TableName=table.name, Key={"pk": item["pk"], "sk": item["sk"]})


def delete_index() -> None:
    """Removes every index entry, and every attribute that marks an item as listed."""
    for item in table.client.scan(TableName=table.name, ConsistentRead=True)["Items"]:
        key = {"pk": item["pk"], "sk": item["sk"]}
        if item["pk"]["S"].startswith(("CREDENTIALS#", "CREDENTIALINDEX")) or item["sk"]["S"].startswith("ISSUER#"):
            table.client.delete_item(TableName=table.name, Key=key)
        elif "listedAs" in item or "identitiesRecorded" in item:
            older = {name: value for name, value in item.items() if name not in {"listedAs", "identitiesRecorded"}}
            table.client.put_item(TableName=table.name, Item=older)


def delete_versions() -> None:
    """Removes the schema version of every item."""
    for item in table.client.scan(TableName=table.name, ConsistentRead=True)["Items"]:
        older = {name: value for name, value in item.items() if name != schema.ATTRIBUTE}
        table.client.put_item(TableName=table.name, Item=older)

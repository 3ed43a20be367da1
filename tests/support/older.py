"""The table as a release without the index of credentials would have left it."""

from controlplane.store.table import table


def forget_index() -> None:
    """Removes every entry of the index, and every mark that something is listed in it."""
    for item in table.client.scan(TableName=table.name, ConsistentRead=True)["Items"]:
        key = {"pk": item["pk"], "sk": item["sk"]}
        if item["pk"]["S"].startswith(("CREDENTIALS#", "CREDENTIALINDEX")):
            table.client.delete_item(TableName=table.name, Key=key)
        elif "listedAs" in item or "listedFor" in item:
            older = {name: value for name, value in item.items() if name not in {"listedAs", "listedFor"}}
            table.client.put_item(TableName=table.name, Item=older)

"""A cap of 50 keys per owner, implemented correctly and incorrectly, to test that races are detected."""

import uuid
from typing import Any

from awsclient.errors import ServiceError

CAP = 50


class Cap:
    """One owner's keys in a table, and the counter that some versions keep."""

    def __init__(self, client: Any, table: str) -> None:
        self.client = client
        self.table = table
        self.owner = f"OWNER#{uuid.uuid4().hex}"

    def fill(self, keys: int) -> None:
        """Makes the owner have this many keys."""
        items: list[dict[str, Any]] = [self._key() for _ in range(keys)]
        items.append({**self._counter(), "keys": {"N": str(keys)}})
        for start in range(0, len(items), 25):
            batch = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
            self.client.batch_write_item(RequestItems={self.table: batch})

    def create(self) -> bool:
        """Correct: one transaction counts and puts."""
        legs = [
            {"Update": {**self._count_one(), "TableName": self.table}},
            {"Put": {"TableName": self.table, "Item": self._key()}},
        ]
        try:
            self.client.transact_write_items(TransactItems=legs)
        except ServiceError as error:
            if error.fields["CancellationReasons"][0]["Code"] != "ConditionalCheckFailed":
                raise
            return False
        return True

    def create_by_count(self) -> bool:
        """Wrong under races: other callers can put between the count and the put."""
        if self.stored() >= CAP:
            return False
        self.client.put_item(TableName=self.table, Item=self._key())
        return True

    def stored(self) -> int:
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
            ExpressionAttributeValues={":pk": {"S": self.owner}, ":prefix": {"S": "KEY#"}},
            Select="COUNT",
            ConsistentRead=True,
        )
        count: int = answer["Count"]
        return count

    def _counter(self) -> dict[str, Any]:
        return {"pk": {"S": self.owner}, "sk": {"S": "META"}}

    def _key(self) -> dict[str, Any]:
        return {"pk": {"S": self.owner}, "sk": {"S": f"KEY#{uuid.uuid4().hex}"}}

    def _count_one(self) -> dict[str, Any]:
        return {
            "Key": self._counter(),
            "UpdateExpression": "SET #keys = #keys + :one",
            "ConditionExpression": "#keys < :cap",
            "ExpressionAttributeNames": {"#keys": "keys"},
            "ExpressionAttributeValues": {":one": {"N": "1"}, ":cap": {"N": str(CAP)}},
        }

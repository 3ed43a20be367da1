"""Calls to the single table: consistent reads, conditional writes, transactions with named legs.

Failures are mapped to `ConditionFailed` with the existing item, `LegFailed` with the name of the first failed leg,
`Throttled`, and `TableUnavailable`. Any other error (a ValidationException, for example) is a bug and is not caught.
All calls of a request share its deadline (`controlplane.platform.core.deadline`).
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from awsclient.errors import NoAnswer, ServiceError
from controlplane.platform.core import acting, deadline
from controlplane.platform.core.aws_clients import create_client
from controlplane.platform.core.settings import settings
from controlplane.platform.table.keys import Index, Key
from controlplane.platform.table.legs import (
    Check,
    Delete,
    Leg,
    Put,
    Record,
    Recorded,
    Unrecorded,
    Update,
    checks_of,
    decode_item,
    encode,
    encode_item,
)
from controlplane.platform.table.parallel import read_each
from controlplane.platform.table.retry import (
    ConditionFailed,
    Errors,
    LegFailed,
    StoreError,
    TableUnavailable,
    Throttled,
    WriteConflict,
    pause,
)

# The store's modules import legs and errors from here, along with the table.
__all__ = [
    "PRIMARY",
    "Check",
    "ConditionFailed",
    "Delete",
    "Leg",
    "LegFailed",
    "Put",
    "QueryPage",
    "Recorded",
    "StoreError",
    "Table",
    "TableUnavailable",
    "Throttled",
    "Unrecorded",
    "Update",
    "table",
]

_THROTTLING = {
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "ThrottlingError",
    "ProvisionedThroughputExceeded",
}
_CONTENDED = {"TransactionConflict", *_THROTTLING}
_UNKNOWN_OUTCOME = {"InternalServerError", "ServiceUnavailable", "InternalFailure", "TransactionInProgressException"}
# The name of the leg that writes a transaction's entry in the audit log. It is the last one, before further entries.
_ENTRY = "audit log"
_ATTEMPTS = 5
_BATCH_GET_LIMIT = 100
_BATCH_WRITE_LIMIT = 25
# The table's primary index; a query can name a secondary index instead.
PRIMARY = Index("", "pk", "sk")


class QueryPage[Item = dict[str, Any]](NamedTuple):
    """Items in order, and the sort key that the next page starts after (None on the last page)."""

    items: list[Item]
    next_sk: str | None

    def read[R](self, read: Callable[[Item], R]) -> "QueryPage[R]":
        """Returns the page with the result of `read` in place of each item."""
        return QueryPage([read(item) for item in self.items], self.next_sk)


def _is_outcome_unknown(error: ServiceError) -> bool:
    return error.status >= 500 or error.code in _UNKNOWN_OUTCOME


def _contended(error: ServiceError | NoAnswer, legs: Mapping[str, Leg]) -> bool:
    """Returns True if a failed transaction applied nothing and can be retried, False if its outcome is unknown.

    Raises LegFailed if a condition was false, and the error itself in all other cases.
    """
    if isinstance(error, NoAnswer):
        return False
    if error.code == "TransactionCanceledException":
        reasons: list[dict[str, Any]] = error.fields.get("CancellationReasons") or []
        failed = {
            name: decode_item(reason["Item"]) if reason.get("Item") else None
            for name, reason in zip(legs, reasons, strict=True)
            if reason.get("Code") == "ConditionalCheckFailed"
        }
        if failed:
            raise LegFailed(failed) from None
        if {reason.get("Code") for reason in reasons} & _CONTENDED:
            return True
    elif error.code in _THROTTLING or error.code == "TransactionConflictException":
        return True
    elif _is_outcome_unknown(error):
        return False
    raise error


def _raise_unless_conflict(error: ServiceError) -> None:
    """Raises the error of the store for a failed call, or the error itself, unless it may be repeated."""
    if error.code == "ConditionalCheckFailedException":
        item = error.fields.get("Item")
        raise ConditionFailed(decode_item(item) if item else None) from None
    if error.code in _THROTTLING:
        raise Throttled(error.code) from error
    if _is_outcome_unknown(error):
        raise _unavailable(error) from error
    if error.code != "TransactionConflictException":
        raise error


def _unavailable(error: ServiceError | NoAnswer) -> TableUnavailable:
    return TableUnavailable(error.code if isinstance(error, ServiceError) else str(error))


def _is_dry(record: Record) -> bool:
    """Returns whether a write must only be checked. A dry run is counted and its refusal recorded like any request.

    Raises TypeError for a write with neither an entry in the audit log nor a reason for none.
    """
    if not isinstance(record, Unrecorded):
        raise TypeError("a write needs an entry in the audit log, or a reason why it has none")
    return acting.is_dry_run() and record is not Unrecorded.COUNTER and record is not Unrecorded.REFUSAL


class Table:
    """A table with its client. Item reads are strongly consistent; queries are only if `consistent` is set."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def client(self) -> Any:
        """The client of DynamoDB, which is created on first use."""
        return create_client("dynamodb")

    def connect(self, endpoint_url: str | None = None, name: str | None = None) -> None:
        """Connects to another endpoint or table, such as a local engine or a test's own table."""
        self.client = create_client("dynamodb", endpoint_url)
        self.name = name or self.name

    def find[R](self, key: Key, read: Callable[[dict[str, Any]], R]) -> R | None:
        """Returns the result of `read` for the item, or None if it doesn't exist."""
        item = self.get(key)
        return read(item) if item else None

    def get(self, key: Key) -> dict[str, Any] | None:
        """Returns the item, or None if it doesn't exist."""
        answer = self._call("get_item", Key=encode_item(key._asdict()), ConsistentRead=True)
        item = answer.get("Item")
        return decode_item(item) if item else None

    def batch_get(self, keys: list[Key]) -> list[dict[str, Any] | None]:
        """Returns the items of distinct keys in order, None if missing. Calls for 100 keys each overlap."""
        if len(keys) > _BATCH_GET_LIMIT:
            starts = range(0, len(keys), _BATCH_GET_LIMIT)
            batches = read_each(self.batch_get, [keys[start : start + _BATCH_GET_LIMIT] for start in starts])
            return [item for batch in batches for item in batch]
        found: dict[Key, dict[str, Any]] = {}
        wanted = [encode_item(key._asdict()) for key in keys]
        request: dict[str, Any] = {self.name: {"Keys": wanted, "ConsistentRead": True}} if wanted else {}
        for attempt in range(_ATTEMPTS):
            if not request:
                break
            if attempt:
                pause(attempt - 1)
            answer = self._call("batch_get_item", RequestItems=request)
            for raw in answer["Responses"].get(self.name, []):
                item = decode_item(raw)
                found[Key(item["pk"], item["sk"])] = item
            request = answer.get("UnprocessedKeys") or {}
        if request:
            raise Throttled("unprocessed keys remain")
        return [found.get(key) for key in keys]

    def query(
        self,
        pk: str | int,
        *,
        prefix: str = "",
        after: str | None = None,
        newest_first: bool = False,
        lowest: str | None = None,
        limit: int | None = None,
        consistent: bool = False,
        index: Index = PRIMARY,
    ) -> QueryPage[dict[str, Any]]:
        """Returns one page of a partition: sort keys that start with `prefix` (or are >= `lowest`), after a position.

        With `limit`, reads one item more than it returns, to detect a next page. Reads are eventually consistent by
        default, at half the price; pass `consistent` if a decision depends on the result. A secondary index is never
        consistent.
        """
        # The position is a bound of the range, not an ExclusiveStartKey, because its item may have been deleted.
        low, high = lowest or prefix, prefix + "\U0010ffff"
        if after is not None and newest_first:
            high = after
        elif after is not None:
            low = after
        if low > high:
            return QueryPage([], None)  # the position is outside the range
        parameters: dict[str, Any] = {
            "KeyConditionExpression": "#pk = :pk AND #sk BETWEEN :low AND :high",
            "ExpressionAttributeNames": {"#pk": index.pk, "#sk": index.sk},
            "ExpressionAttributeValues": {":pk": encode(pk), ":low": {"S": low or "\0"}, ":high": {"S": high}},
            "ConsistentRead": consistent,
            "ScanIndexForward": not newest_first,
        }
        if index is not PRIMARY:
            parameters["IndexName"] = index.name
        if limit is not None:
            parameters["Limit"] = limit + 1 + (after is not None)  # BETWEEN includes the position itself
        items: list[dict[str, Any]] = []
        while True:
            answer = self._call("query", **parameters)
            items += [decode_item(item) for item in answer["Items"] if item[index.sk]["S"] != after]
            start = answer.get("LastEvaluatedKey")
            if start is None or (limit is not None and len(items) > limit):
                break
            parameters["ExclusiveStartKey"] = start
        if limit is None or len(items) <= limit:
            return QueryPage(items, None)
        return QueryPage(items[:limit], items[limit - 1][index.sk])

    def count(self, pk: str, *, index: Index, at_most: int) -> int:
        """Returns the number of items in a partition of an index, or `at_most` if there are more.

        Eventually consistent. Doesn't go on after a page of 1 MB: the number can then be too low.
        """
        answer = self._call(
            "query",
            IndexName=index.name,
            KeyConditionExpression="#pk = :pk",
            ExpressionAttributeNames={"#pk": index.pk},
            ExpressionAttributeValues={":pk": encode(pk)},
            Select="COUNT",
            Limit=at_most,
        )
        return int(answer["Count"])

    # Every write says why it has no entry in the audit log; one that has an entry is a transaction.

    def update(self, leg: Update, record: Unrecorded) -> dict[str, Any]:
        """Returns the item after the change (empty in a dry run). Raises ConditionFailed with the existing item."""
        if _is_dry(record):
            self._check(leg)
            return {}
        answer = self._call(
            "update_item", **leg.parameters(), ReturnValues="ALL_NEW", ReturnValuesOnConditionCheckFailure="ALL_OLD"
        )
        return decode_item(answer["Attributes"])

    def put(self, leg: Put, record: Unrecorded) -> None:
        """Writes an item. Raises ConditionFailed with the existing item."""
        if _is_dry(record):
            self._check(leg)
            return
        self._call("put_item", **leg.parameters(), ReturnValuesOnConditionCheckFailure="ALL_OLD")

    def delete(self, leg: Delete, record: Unrecorded) -> dict[str, Any] | None:
        """Returns the deleted item, or None if it didn't exist. Raises ConditionFailed with the existing item."""
        if _is_dry(record):
            self._check(leg)
            return None
        answer = self._call(
            "delete_item", **leg.parameters(), ReturnValues="ALL_OLD", ReturnValuesOnConditionCheckFailure="ALL_OLD"
        )
        deleted = answer.get("Attributes")
        return decode_item(deleted) if deleted else None

    def put_all(self, items: Iterable[Mapping[str, Any]], record: Unrecorded) -> None:
        """Writes or overwrites items in batches of 25, unconditionally and not in a transaction."""
        self._write_batches([{"PutRequest": {"Item": encode_item(item)}} for item in items], record)

    def delete_all(self, keys: Iterable[Key], record: Unrecorded) -> None:
        """Deletes items in batches of 25, unconditionally and not in a transaction."""
        self._write_batches([{"DeleteRequest": {"Key": encode_item(key._asdict())}} for key in keys], record)

    def delete_partition(self, pk: str, record: Unrecorded, prefix: str = "") -> None:
        """Deletes the items of a partition, or those whose sort keys start with `prefix`, as `delete_all`."""
        found = self.query(pk, prefix=prefix, consistent=True).items
        self.delete_all((Key(item["pk"], item["sk"]) for item in found), record)

    def _write_batches(self, requests: list[dict[str, Any]], record: Unrecorded) -> None:
        if _is_dry(record):
            return
        for start in range(0, len(requests), _BATCH_WRITE_LIMIT):
            batch: dict[str, Any] = {self.name: requests[start : start + _BATCH_WRITE_LIMIT]}
            for attempt in range(_ATTEMPTS):
                batch = self._call("batch_write_item", RequestItems=batch).get("UnprocessedItems") or {}
                if not batch:
                    break
                pause(attempt)
            else:
                raise Throttled("unprocessed writes remain")

    def transact(
        self,
        legs: Mapping[str, Leg],
        record: Record,
        errors: Errors | None = None,
        otherwise: type[Exception] | None = None,
    ) -> None:
        """Writes all legs and the entries in the audit log, or none.

        Raises the error of `errors` for the first failed leg, or else `otherwise`, or else LegFailed.

        Contention (another transaction on the same items, or throttling) applies nothing and is retried with a new
        token. After the first unknown outcome, retries keep the token: if the write was applied, DynamoDB returns its
        original result instead of checking conditions that the write itself has changed.
        """
        recorded = (record,) if isinstance(record, Recorded) else record if isinstance(record, tuple) else ()
        if acting.is_dry_run() if recorded else _is_dry(record):  # a dry run has nothing to record
            legs = checks_of(legs)
        else:
            entries = {f"{_ENTRY} {number}" if number else _ENTRY: it.leg() for number, it in enumerate(recorded)}
            legs = {**legs, **entries}
        try:
            if legs:
                self._send_transaction(legs)
        except LegFailed as failure:
            raise failure.mapped(errors or {}, otherwise) from None

    def transact_or_retry(self, legs: Mapping[str, Leg], record: Record) -> None:
        """Like `transact`, for `retry_on_conflict`: raises WriteConflict if a condition was false."""
        self.transact(legs, record, otherwise=WriteConflict)

    def _check(self, leg: Leg) -> None:
        """Checks the leg's condition in place of its write, for a dry run. Raises ConditionFailed."""
        try:
            self.transact({"": leg}, Unrecorded.DRY_RUN)
        except LegFailed as failure:
            raise ConditionFailed(failure.item) from None

    def _send_transaction(self, legs: Mapping[str, Leg]) -> None:
        common = {"TableName": self.name, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        items = [{leg.action: {**leg.parameters(), **common}} for leg in legs.values()]
        token = secrets.token_hex(16)
        certain = True
        with deadline.spending():
            for attempt in range(_ATTEMPTS):
                if deadline.is_over():
                    raise TableUnavailable("out of time")
                try:
                    self.client.transact_write_items(TransactItems=items, ClientRequestToken=token)
                except (ServiceError, NoAnswer) as error:
                    contended = _contended(error, legs)
                    if attempt == _ATTEMPTS - 1 or deadline.is_over():
                        raise (Throttled("contention") if contended else _unavailable(error)) from error
                    # If the client has retried the request itself, the outcome of its first attempt is unknown.
                    is_repeated = isinstance(error, ServiceError) and error.retries > 0
                    certain = certain and contended and not is_repeated
                    if certain:
                        token = secrets.token_hex(16)
                    pause(attempt)
                else:
                    return

    def ping(self) -> None:
        """Checks that the table responds, by reading a key that doesn't exist."""
        self._call("get_item", Key=encode_item({"pk": "HEALTH", "sk": "HEALTH"}))

    def _call(self, operation: str, **parameters: Any) -> Any:
        """Makes a call other than a transaction. Those for batches name the table in their `RequestItems`."""
        if "RequestItems" not in parameters:
            parameters["TableName"] = self.name
        method = getattr(self.client, operation)
        with deadline.spending():
            for attempt in range(_ATTEMPTS):
                if deadline.is_over():
                    raise TableUnavailable("out of time")
                try:
                    return method(**parameters)
                except NoAnswer as error:
                    raise _unavailable(error) from error
                except ServiceError as error:
                    _raise_unless_conflict(error)
                    # A concurrent transaction holds the item: nothing was applied.
                    if attempt == _ATTEMPTS - 1 or deadline.is_over():
                        raise Throttled(error.code) from error
                pause(attempt)
        raise AssertionError("the last attempt raises")


table = Table(settings.table_name)

"""Our shorter way to moto answers like moto: to what succeeds, to what fails, and to what is left behind."""

from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from awsclient.boto3_client import Boto3Client
from awsclient.errors import ServiceError
from tests.support import moto
from tests.support.table import create_table

_NAME = "quick"
_KEY = {"pk": {"S": "USER#a"}, "sk": {"S": "PROFILE"}}
_OTHER = {"pk": {"S": "USER#a"}, "sk": {"S": "OTHER"}}
_NEW = {"pk": {"S": "USER#b"}, "sk": {"S": "PROFILE"}}
_ATTRIBUTES = {
    "text": {"S": "a"},
    "empty": {"S": ""},
    "number": {"N": "7"},
    "flag": {"BOOL": False},
    "none": {"NULL": True},
    "list": {"L": [{"S": "a"}, {"M": {"deep": {"L": []}}}]},
    "strings": {"L": [{"S": "a"}, {"N": "1"}]},
    "scansByStatus": {"S": "USER#a"},
    "inboxOrder": {"S": "a"},
    "map": {"M": {"in": {"M": {"ner": {"N": "1.50"}}}, "nothing": {"M": {}}}},
}
_VALUES = {":one": {"N": "1"}, ":text": {"S": "b"}, ":list": {"L": [{"S": "z"}]}}
_UPDATES: list[tuple[str, dict[str, str]]] = [
    ("SET #a = :text", {"#a": "text"}),
    ("SET #a = #a + :one, #b = if_not_exists(#b, :text)", {"#a": "number", "#b": "missing"}),
    ("SET #a = list_append(#a, :list)", {"#a": "list"}),
    ("SET #a.#b.#c = :one", {"#a": "map", "#b": "in", "#c": "ner"}),
    ("ADD #a :one", {"#a": "number"}),
    ("ADD #a :one", {"#a": "missing"}),
    ("REMOVE #a, #b", {"#a": "text", "#b": "missing"}),
    ("SET #a = :text REMOVE #b ADD #c :one", {"#a": "text", "#b": "flag", "#c": "number"}),
    # These fail.
    ("SET #a = :text", {"#a": "sk"}),
    ("SET #a = :text, #b = :text", {"#a": "text", "#b": "text"}),
    ("SET #a.#b = :text, #a = :one", {"#a": "map", "#b": "in"}),
    ("SET #a = :text SET #b = :text", {"#a": "text", "#b": "missing"}),
    ("REMOVE #a REMOVE #b", {"#a": "text", "#b": "missing"}),
    ("SET #a = #b", {"#a": "text", "#b": "missing"}),
    ("SET #a = :missing", {"#a": "text"}),
    ("SET #a = :text", {"#a": "text", "#unused": "text"}),
    ("SET #undefined = :text", {}),
    ("SET size = :text", {}),
    ("ADD #a :text", {"#a": "number"}),
    ("SET #a.#b = :text", {"#a": "missing", "#b": "in"}),
    ("SET #a", {"#a": "text"}),
]


def _put(key: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {"Put": {"TableName": _NAME, "Item": {**key, **_ATTRIBUTES}, **options}}


def _update(key: dict[str, Any], expression: str, names: dict[str, str], **options: Any) -> dict[str, Any]:
    values = {name: value for name, value in _VALUES.items() if name in expression}
    leg = {"TableName": _NAME, "Key": key, "UpdateExpression": expression, **options}
    return leg | ({"ExpressionAttributeNames": names} if names else {}) | (
        {"ExpressionAttributeValues": values} if values else {}
    )  # fmt: skip


_REFUSED = {"ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
_CHANGE = {"Update": _update(_KEY, "SET #a = :text ADD #b :one", {"#a": "text", "#b": "number"})}
_DELETE = {"Delete": {"TableName": _NAME, "Key": _OTHER}}
_MISSED = {"Put": {**_put(_NEW)["Put"], "ConditionExpression": "attribute_exists(pk)"}}
_CHECK = {"ConditionCheck": {"TableName": _NAME, "Key": _KEY, "ConditionExpression": "attribute_exists(pk)"}}
_TRANSACTIONS: list[list[dict[str, Any]]] = [
    [_put(_NEW), _CHANGE, _DELETE],
    [_CHECK, _put(_NEW)],
    # These fail after a change, which is undone.
    [_CHANGE, _DELETE, _MISSED],
    [_put(_NEW), _CHANGE, _put(_OTHER, **_REFUSED)],
    [_put(_NEW), _DELETE, {"Update": _CHANGE["Update"] | {"ConditionExpression": "attribute_not_exists(pk)"}}],
    [_CHANGE, _CHANGE],
    [_put(_NEW), {"Update": _update(_KEY, "SET #a = :text", {"#a": "sk"})}],
    [_put(_NEW), {"Update": _update(_KEY, "ADD #a :text", {"#a": "number"})}],
    [_DELETE, {"Update": _update(_NEW, "SET #a.#b = :text", {"#a": "missing", "#b": "in"})}],
]  # fmt: skip


_PARTITION = {
    "KeyConditionExpression": "#pk = :pk AND #sk BETWEEN :low AND :high",
    "ExpressionAttributeNames": {"#pk": "pk", "#sk": "sk"},
    "ExpressionAttributeValues": {":pk": {"S": "USER#a"}, ":low": {"S": "A"}, ":high": {"S": "Z"}},
}
_INBOX = {
    "IndexName": "inbox",
    "KeyConditionExpression": "#pk = :pk",
    "ExpressionAttributeNames": {"#pk": "pk"},
    "ExpressionAttributeValues": {":pk": {"S": "USER#a"}},
}
_SCANS = {**_INBOX, "IndexName": "scansByStatus", "ExpressionAttributeNames": {"#pk": "scansByStatus"}}
_READS: list[tuple[str, dict[str, Any]]] = [
    ("Query", _PARTITION),
    ("Query", {**_PARTITION, "ScanIndexForward": False, "Limit": 1}),
    ("Query", {**_PARTITION, "Limit": 1, "ExclusiveStartKey": _OTHER}),
    ("Query", _INBOX),
    ("Query", {**_SCANS, "Limit": 1}),
    ("Query", {**_SCANS, "Select": "COUNT"}),
    ("Scan", {"Limit": 1, "ExclusiveStartKey": _KEY}),
    ("GetItem", {"Key": _KEY, "ConsistentRead": True}),
    ("GetItem", {"Key": _NEW}),
]


def _answer(client: Any, operation: str, request: dict[str, Any]) -> Any:
    """Returns the response or the error, without the request's id and what botocore leaves out."""
    try:
        response = client.call(operation, {**request})
    except ServiceError as error:
        details = {name: value for name, value in error.fields.items() if name not in {"message", "Message"}}
        return error.code, error.status, str(error), details
    except KeyError as error:  # moto's own failure at a name that isn't defined
        return repr(error)
    return {
        name: value for name, value in response.items() if name not in {"ResponseMetadata", "ConsumedCapacityUnits"}
    }


def _requests() -> Iterator[tuple[str, dict[str, Any]]]:
    for expression, names in _UPDATES:
        for key, returned in ((_KEY, "UPDATED_OLD"), (_NEW, "ALL_NEW")):
            yield "UpdateItem", _update(key, expression, names, ReturnValues=returned)
    for legs in _TRANSACTIONS:
        yield "TransactWriteItems", {"TransactItems": legs}
    yield "PutItem", {**_put(_KEY)["Put"], **_REFUSED}
    yield "DeleteItem", {"TableName": _NAME, "Key": _KEY, "ReturnValues": "ALL_OLD"}
    yield "BatchWriteItem", {"RequestItems": {_NAME: [{"DeleteRequest": {"Key": _KEY}}]}}
    yield "BatchGetItem", {"RequestItems": {_NAME: {"Keys": [_KEY, _NEW]}}}
    for operation, request in _READS:
        yield operation, {"TableName": _NAME, **request}


def _history(client: Any) -> list[Any]:
    """Returns all answers of a client, and what each request leaves behind in a table with the same two items."""
    seen = []
    for operation, request in _requests():
        create_table(client, _NAME)
        for key in (_KEY, _OTHER):
            client.put_item(**_put(key)["Put"])
        seen.append((operation, request, _answer(client, operation, request)))
        seen.append(_answer(client, "Scan", {"TableName": _NAME}))
        client.delete_table(TableName=_NAME)
    return seen


def test_answers_are_those_of_moto(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = _history(moto.MotoClient())
    for owner, name, plain in moto.PLAIN:
        monkeypatch.setattr(owner, name, plain)
    with mock_aws():
        expected = _history(Boto3Client("dynamodb"))
    for answer, as_by_moto in zip(answers, expected, strict=True):
        assert answer == as_by_moto
    refused = [seen for seen in expected if isinstance(seen, tuple) and isinstance(seen[2], tuple)]
    assert len(refused) > 25

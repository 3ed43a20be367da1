"""The fast moto answers like moto: to what succeeds, to what fails, and to what is left behind."""

from collections.abc import Iterator
from typing import Any

import boto3
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.support.quick_moto import quick_moto
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
    "bytes": {"B": b"\x00a"},
    "texts": {"SS": ["a", "b"]},
    "list": {"L": [{"S": "a"}, {"M": {"deep": {"L": []}}}, {"B": b"c"}]},
    "strings": {"L": [{"S": "a"}, {"N": "1"}]},
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


def _answer(client: Any, operation: str, **request: Any) -> Any:
    """Returns the response or the error, without the request's id and time."""
    try:
        response = getattr(client, operation)(**request)
    except ClientError as error:
        response = error.response
    except KeyError as error:  # moto's own failure at a name that isn't defined
        response = {"Error": repr(error)}
    return {name: value for name, value in response.items() if name != "ResponseMetadata"}


def _requests() -> Iterator[tuple[str, dict[str, Any]]]:
    for expression, names in _UPDATES:
        for key, returned in ((_KEY, "UPDATED_OLD"), (_NEW, "ALL_NEW")):
            yield "update_item", _update(key, expression, names, ReturnValues=returned)
    for legs in _TRANSACTIONS:
        yield "transact_write_items", {"TransactItems": legs}
    yield "put_item", {**_put(_KEY)["Put"], **_REFUSED}
    yield "delete_item", {"TableName": _NAME, "Key": _KEY, "ReturnValues": "ALL_OLD"}


def _history() -> list[Any]:
    """Returns all answers of a moto, and what each request leaves behind in a table with the same two items."""
    seen = []
    client = boto3.client("dynamodb")
    with mock_aws():
        for operation, request in _requests():
            create_table(client, _NAME)
            for key in (_KEY, _OTHER):
                client.put_item(**_put(key)["Put"])
            seen.append((operation, request, _answer(client, operation, **request)))
            seen.append(_answer(client, "scan", TableName=_NAME))
            client.delete_table(TableName=_NAME)
    return seen


def test_the_fast_moto_answers_like_moto() -> None:
    expected = _history()
    with quick_moto():
        answers = _history()
    for answer, as_by_moto in zip(answers, expected, strict=True):
        assert answer == as_by_moto
    refused = [seen for seen in expected if isinstance(seen, tuple) and "Error" in seen[2]]
    assert len(refused) > 25

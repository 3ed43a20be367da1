"""moto's DynamoDB in the tests' own process: the product's client hands it the request instead of sending it.

moto answers requests of any kind on tables of any size, and repeats much of its work. The subclasses and replacements
here give the same answers in less time:

- An item in a table is replaced, never changed, so neither answers nor transactions need copies.
- A query sorts the items of its partition, not those of the table.
- An update expression is parsed once, and each check goes through it once. A condition is parsed once with its values.
- An answer is made into JSON once.
"""

import copy
import pickle
import re
import threading
from collections import deque
from functools import cache, lru_cache
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.core.model_instances import reset_model_data
from moto.core.utils import camelcase_to_underscores
from moto.dynamodb import responses
from moto.dynamodb.comparisons import ConditionExpressionParser
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import Table
from moto.dynamodb.models.utilities import dynamo_json_dump
from moto.dynamodb.parsing import validators
from moto.dynamodb.parsing.ast_nodes import UpdateExpression  # type: ignore[attr-defined]
from moto.dynamodb.parsing.expressions import UpdateExpressionParser  # type: ignore[attr-defined]
from moto.dynamodb.parsing.validators import ActionCountValidator, OverlappingPathsValidator
from moto.dynamodb.responses import DynamoHandler
from pydantic_core import from_json

from awsclient.client import OwnClient
from awsclient.connection import Response

# Not checked: the methods of the subclasses name only the parameters that they read.
_PlainItem: Any = Item
_PlainTable: Any = Table
_PlainBackend: Any = DynamoDBBackend
_responses: Any = responses
_OPERATION = re.compile(rb"x-amz-target: \w+\.(\w+)")


class _Item(_PlainItem):
    _size: int | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def to_change(self) -> Any:
        return super().__deepcopy__({})

    def size(self) -> int:
        if self._size is None:
            self._size = super().size()
        return self._size


class _Table(_PlainTable):
    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def put_item(self, *rest: Any, **options: Any) -> Any:
        item = super().put_item(*rest, **options)
        item.__class__ = _Item
        return item

    def query(self, *rest: Any, hash_key_conditions: list[tuple[str, DynamoType]], **options: Any) -> Any:
        """Queries a table that has only the items of the partition."""
        ((attribute, value),) = hash_key_conditions
        partition = copy.copy(self)
        if attribute == self.hash_key_attr:
            partition.items = {value: self.items.get(value, {})}
        else:
            found = [it for it in self._stored() if attribute in it.attrs and it.attrs[attribute] == value]
            partition.items = {number: {number: item} for number, item in enumerate(found)}
        return _PlainTable.query(partition, *rest, hash_key_conditions=hash_key_conditions, **options)

    def all_items(self) -> list[Any]:
        return sorted(self._stored(), key=lambda item: (item.hash_key.cast_value, item.range_key.cast_value))

    def _stored(self) -> list[Any]:
        return [item for items in self.items.values() for item in items.values()]


class _Backend(_PlainBackend):
    def create_table(self, name: str, **properties: Any) -> Any:
        made = super().create_table(name, **properties)
        made.__class__ = _Table
        return made

    def delete_table(self, name: str) -> Any:
        reset_model_data()  # moto remembers every item that there ever was
        _parsed.clear()
        return super().delete_table(name)

    def transact_write_items(self, transact_items: list[dict[str, Any]]) -> None:
        """Undoes a transaction that fails. moto keeps a copy of the table for it, before each leg."""
        before = []
        for leg in (leg for item in transact_items for leg in item.values()):
            items, place = self._place(leg["TableName"], leg.get("Key") or leg["Item"])
            before.append((items, place, items.get(place)))
        try:
            super().transact_write_items(transact_items)
        except Exception:
            for items, place, item in before:
                items.pop(place, None)
                if item is not None:
                    items[place] = item
            raise

    def update_item(self, table_name: str, key: dict[str, Any], **options: Any) -> Any:
        items, place = self._place(table_name, key)
        if place in items:
            items[place] = items[place].to_change()
        return super().update_item(table_name, key, **options)

    def _place(self, table_name: str, key: dict[str, Any]) -> tuple[dict[DynamoType, Any], DynamoType]:
        """Returns the items of the partition, and the sort key."""
        table = self.get_table(table_name)
        return table.items[DynamoType(key[table.hash_key_attr])], DynamoType(key[table.range_key_attr])


class _Handler(DynamoHandler):
    dynamodb_backend: Any = None


class MotoClient(OwnClient):
    """The product's client, connected to an empty moto of its own. Its calls are atomic: one after another."""

    def __init__(self) -> None:
        super().__init__("dynamodb")
        self._backend = _Backend("eu-central-1", "123456789012")
        # An answer is made into JSON at once, without making it into dictionaries before.
        _responses.dynamo_to_dict = lambda answer: answer
        self._lock = threading.Lock()

    def _exchange(self, request: bytes) -> Response:
        head, _, body = request.partition(b"\r\n\r\n")
        operation = _OPERATION.search(head)
        assert operation
        handler = _Handler()
        handler.dynamodb_backend, handler.body = self._backend, from_json(body)
        with self._lock:
            try:
                answer = getattr(handler, camelcase_to_underscores(operation[1].decode()))()
            except JsonRESTError as refusal:
                return Response(refusal.code, {}, refusal.description.encode())
            return Response(200, {}, dynamo_json_dump(answer.result).encode())


_parsed: dict[str, tuple[Any, list[str], list[str]]] = {}


def _parse(parser: Any) -> Any:
    """Parses a condition with these names and values once. moto does it to check the request, and to evaluate it."""
    key = repr((parser.condition_expression, parser.expression_attribute_names, parser.expression_attribute_values))
    if key not in _parsed:
        _parsed[key] = _plain_parse(parser), parser.expr_attr_names_found, parser.expr_attr_values_found
    condition, names, values = _parsed[key]
    parser.expr_attr_names_found, parser.expr_attr_values_found = [*names], [*values]
    return condition


_plain_parse = ConditionExpressionParser.parse


_plain_lex = ConditionExpressionParser._lex_condition_expression


@cache
def _lexed(expression: str) -> tuple[Any, ...]:
    return tuple(_plain_lex(ConditionExpressionParser(expression, None, None)))


def _check_root(validator: Any, expression: Any) -> Any:
    """Checks a whole expression, which moto does again for each of its parts."""
    return validator._processing_map()[UpdateExpression](expression)


for _owner, _name, _quick in (
    (ConditionExpressionParser, "_lex_condition_expression", lambda it: deque(_lexed(it.condition_expression))),
    (UpdateExpressionParser, "make", staticmethod(lru_cache(maxsize=None)(UpdateExpressionParser.make))),
    (validators, "deepcopy", lambda node: pickle.loads(pickle.dumps(node))),
    (ConditionExpressionParser, "parse", _parse),
    (ActionCountValidator, "traverse", _check_root),
    (OverlappingPathsValidator, "traverse", _check_root),
):
    setattr(_owner, _name, _quick)

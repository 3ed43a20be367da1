"""Makes moto's DynamoDB several times as fast, with the same answers.

moto copies the whole table for each leg of a transaction, asks an abstract class about each node of an expression ten
times, and looks up ten aliases of every attribute that a response doesn't have. The replacements below do only what
such a request needs. tests/unit/support/test_quick_moto.py compares the answers of both.
"""

import copy
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from moto.core import models as mocks
from moto.core.serialize import BaseJSONSerializer
from moto.dynamodb import models
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table
from moto.dynamodb.parsing import validators
from moto.dynamodb.parsing.ast_nodes import (  # type: ignore[attr-defined]  # the module is excluded from checks
    DepthFirstTraverser,
    Expression,
    Node,
    UpdateExpression,
    UpdateExpressionFunction,
)
from moto.dynamodb.parsing.expressions import UpdateExpressionParser  # type: ignore[attr-defined]
from moto.dynamodb.parsing.validators import ActionCountValidator, OverlappingPathsValidator

_update_item = DynamoDBBackend.update_item
_serialize_structure = BaseJSONSerializer._serialize_type_structure
_make_expression = lru_cache(maxsize=None)(UpdateExpressionParser.make)


def _copy(original: Any) -> Any:
    """Copies an item, or a table: its items stay the same, because `_update_copy` never changes an item in place."""
    if not isinstance(original, Table) or original.range_key_attr is None:
        return copy.deepcopy(original)
    copied = copy.copy(original)
    copied.items = copy.copy(original.items)
    for key, items in original.items.items():
        copied.items[key] = dict(items)
    return copied


def _update_copy(backend: DynamoDBBackend, table_name: str, key: dict[str, Any], *rest: Any, **options: Any) -> Any:
    table = backend.get_table(table_name)
    if {table.hash_key_attr, table.range_key_attr} <= {*key}:
        hash_key, range_key = DynamoType(key[table.hash_key_attr]), DynamoType(key[table.range_key_attr])
        item = table.get_item(hash_key, range_key)
        if item is not None:
            table.items[hash_key][range_key] = copy.deepcopy(item)
    return _update_item(backend, table_name, key, *rest, **options)


@cache
def _is(kind: type, kinds: tuple[type, ...]) -> bool:
    return issubclass(kind, kinds)


def _processors(traverser: DepthFirstTraverser) -> dict[type, Callable[[Any], Any]]:
    known: dict[type, Callable[[Any], Any]] | None = traverser.__dict__.get("_known_processors")
    if known is None:
        known = traverser._known_processors = traverser._processing_map()
    return known


def _traverse(traverser: DepthFirstTraverser, node: Any, child_id: int = -1) -> Any:
    if not _is(type(node), (Node,)):
        return node
    parent = node.parent
    for index, child in enumerate(node.children or ()):
        traverser.pre_processing_of_child(node, index)
        _traverse(traverser, child, index)
    for kind, process in _processors(traverser).items():
        if _is(type(node), (kind,)):
            node = process(node)
            node.parent = parent
            if parent:
                parent.children[child_id] = node
            break
    return node


def _check_root(validator: Any, expression: Node) -> Node:
    """Checks a whole expression, which moto does again for each of its parts."""
    return _processors(validator)[UpdateExpression](expression)


def _find_clauses(node: Node, kinds: list[type]) -> list[Node]:
    clauses = []
    for child in node.children or ():
        if type(child) in kinds:
            clauses.append(child)
        elif _is(type(child), (Expression, UpdateExpressionFunction)):
            clauses += child.find_clauses(kinds)
    return clauses


class _Unusual(Exception):
    """An attribute that isn't written as it is stored."""


def _attribute(value: Any) -> dict[str, Any]:
    """Returns an attribute as JSON. Raises _Unusual if only moto's serializer knows how."""
    if type(value) is not dict or len(value) != 1:
        raise _Unusual
    ((kind, content),) = value.items()
    if (kind in {"S", "N"} and type(content) is str) or (kind in {"BOOL", "NULL"} and type(content) is bool):
        return {kind: content}
    if kind == "M" and isinstance(content, Mapping):
        return {kind: {name: _attribute(part) for name, part in content.items()}}
    if kind == "L" and type(content) is list:
        return {kind: [_attribute(part) for part in content]}
    raise _Unusual


def _serialize_quickly(serializer: BaseJSONSerializer, serialized: Any, value: Any, shape: Any, key: str) -> None:
    if shape.name == "AttributeValue" and key:
        try:
            attribute = _attribute(value)
        except _Unusual:
            pass
        else:
            serializer._default_serialize(serialized, attribute, shape, key)
            return
    _serialize_structure(serializer, serialized, value, shape, key)


_REPLACEMENTS: tuple[tuple[Any, str, Any], ...] = (
    (models, "copy", SimpleNamespace(deepcopy=_copy)),
    (DynamoDBBackend, "update_item", _update_copy),
    (DepthFirstTraverser, "traverse_node_recursively", _traverse),
    (Node, "find_clauses", _find_clauses),
    (ActionCountValidator, "traverse", _check_root),
    (OverlappingPathsValidator, "traverse", _check_root),
    # A parsed expression never changes: validators copy it.
    (UpdateExpressionParser, "make", staticmethod(_make_expression)),
    (validators, "deepcopy", lambda node: pickle.loads(pickle.dumps(node))),
    (BaseJSONSerializer, "_serialize_type_structure", _serialize_quickly),
    # These intercept the library `requests`, which nothing here uses.
    (mocks, "RESPONSES_METHODS", []),
)


@contextmanager
def quick_moto() -> Iterator[None]:
    """Makes moto fast while open."""
    with ExitStack() as stack:
        for owner, name, replacement in _REPLACEMENTS:
            stack.enter_context(patch.object(owner, name, replacement))
        yield

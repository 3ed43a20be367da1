"""A table whose eventually consistent reads are late, below the client, so that the product's code runs unmodified.

DynamoDB promises nothing about how far such a read, or any read of a secondary index, is behind. Local engines are
never behind, so a decision made from such a read passes every test. Here, reads that aren't strongly consistent see
the table as it was before the last writes: as many as the bound allows, unless they are a second old.

A list may be late, but tests check it at once. So queries are late only if they decide something: in requests that
aren't a GET, and in workers. Those of a sweep are on time, because the next sweep finds the rest a minute later. Reads
of single items are always late, because every one that isn't consistent is a mistake.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unittest import mock

from awsclient.boto3_client import Boto3Client
from awsclient.client import Client, OwnClient
from controlplane.platform.core import clock
from controlplane.platform.queues.messages import Queue
from tests.support import permissions
from tests.support.calls import item_of, parts_of

# More writes than any test makes within a second of its clock.
EVERYTHING = 10_000
_LATE_SECONDS = 1
_WRITTEN_AT_ONCE = 25
_READ_AT_ONCE = 100

type Item = dict[str, Any]
type Call = Callable[[str, dict[str, Any]], Any]
type Place = tuple[str, str]

_WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
_WORKERS = {queue.replace("-", "_") for queue in Queue}
_open: list["LaggingTables"] = []
_deciding: ContextVar[bool] = ContextVar("deciding", default=False)


class _Write(NamedTuple):
    """One call: when it was made, and each item that it wrote as it was afterward, or None if it was deleted."""

    at: float
    images: dict[Place, Item | None]


@dataclass
class _Replica:
    """The second table with the late state. It takes the writes that reads may see when one needs them."""

    name: str
    unseen: list[_Write] = field(default_factory=list)
    settled: int = 0

    def catch_up(self, call: Call, bound: int) -> None:
        """Applies the writes that a read must see by now."""
        before = _seconds() - _LATE_SECONDS
        due = max(self.settled, len(self.unseen) - bound)
        while due < len(self.unseen) and self.unseen[due].at <= before:
            due += 1
        images: dict[Place, Item | None] = {}
        for write in self.unseen[:due]:
            images |= write.images
        del self.unseen[:due]
        self.settled = 0
        requests = [
            {"PutRequest": {"Item": image}} if image else {"DeleteRequest": {"Key": _key(place)}}
            for place, image in images.items()
        ]
        for start in range(0, len(requests), _WRITTEN_AT_ONCE):
            call("BatchWriteItem", {"RequestItems": {self.name: requests[start : start + _WRITTEN_AT_ONCE]}})


@dataclass(eq=False)
class LaggingTables:
    """Answers the calls of every client. `bound` is the number of last writes that a late read doesn't see.

    With None, tables that are created are like those of the engine.
    """

    bound: int | None
    _replicas: dict[str, _Replica] = field(default_factory=dict)
    # Not held during the product's own calls, which may hang.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, call: Call, operation: str, parameters: dict[str, Any]) -> Any:
        if operation == "CreateTable" and self.bound is not None:
            replica = _Replica(f"{parameters['TableName']}-late")
            call(operation, {**parameters, "TableName": replica.name})
            self._replicas[parameters["TableName"]] = replica
        elif operation == "DeleteTable" and (made := self._replicas.pop(parameters["TableName"], None)):
            call(operation, {"TableName": made.name})
        elif self._replicas and _is_late(operation, parameters):
            return self._read_late(call, operation, parameters)
        elif self._replicas and operation in _WRITES:
            return self._write(call, operation, parameters)
        return call(operation, parameters)

    def settle(self) -> None:
        for replica in self._replicas.values():
            replica.settled = len(replica.unseen)

    def _write(self, call: Call, operation: str, parameters: dict[str, Any]) -> Any:
        answer = call(operation, parameters)
        with self._lock:  # the images of later writes are at least as late
            for name, images in _images(call, operation, parameters).items():
                if name in self._replicas:
                    self._replicas[name].unseen.append(_Write(_seconds(), images))
        return answer

    def _read_late(self, call: Call, operation: str, parameters: dict[str, Any]) -> Any:
        requests = parameters.get("RequestItems", {})
        (name,) = requests or (parameters["TableName"],)
        replica = self._replicas.get(name)
        if replica is None:
            return call(operation, parameters)
        with self._lock:
            replica.catch_up(call, self.bound or 0)
        if not requests:
            return call(operation, {**parameters, "TableName": replica.name})
        answer = call(operation, {**parameters, "RequestItems": {replica.name: requests[name]}})
        late = {kind: {name: found[replica.name]} for kind in ("Responses", "UnprocessedKeys")
                if replica.name in (found := answer.get(kind) or {})}  # fmt: skip
        return {**answer, "UnprocessedKeys": {}, **late}


@contextmanager
def deciding(method: str = "POST") -> Iterator[None]:
    """While open, queries that aren't consistent are late, unless the method is GET."""
    token = _deciding.set(method != "GET")
    try:
        yield
    finally:
        _deciding.reset(token)


@contextmanager
def lagging_tables(bound: int | None) -> Iterator[LaggingTables]:
    """While open, every table that is created is late, for all clients. Opened once, below what records calls."""
    tables = LaggingTables(bound)
    with ExitStack() as patches:
        _open.append(tables)
        patches.callback(_open.remove, tables)
        for kind in (OwnClient, Boto3Client):
            patches.enter_context(mock.patch.object(kind, "call", _through(tables, kind.call)))
        yield tables


@contextmanager
def late_by(bound: int) -> Iterator[None]:
    """While open, tables are created late, and by this bound."""
    (tables,) = _open
    before, tables.bound = tables.bound, bound
    try:
        yield
    finally:
        tables.bound = before


def is_lagging() -> bool:
    """Returns whether tables that are created are late."""
    return any(tables.bound is not None for tables in _open)


def settle() -> None:
    """Lets every later read see what has been written so far, as if a second had passed."""
    for tables in _open:
        tables.settle()


def _seconds() -> float:
    """Returns the time of the clock that tests advance. It isn't asked for it, because tests count the readings."""
    return getattr(clock.source, "seconds", 0.0)


def _through(tables: LaggingTables, inner: Callable[..., Any]) -> Callable[..., Any]:
    def outer(client: Client, operation: str, parameters: dict[str, Any]) -> Any:
        if client.service != "dynamodb":
            return inner(client, operation, parameters)
        return tables.answer(lambda *sent: inner(client, *sent), operation, parameters)

    return outer


def _is_late(operation: str, parameters: dict[str, Any]) -> bool:
    if operation == "BatchGetItem":
        return not any(request.get("ConsistentRead") for request in parameters["RequestItems"].values())
    if operation not in {"GetItem", "Query", "Scan"} or parameters.get("ConsistentRead"):
        return False
    return operation == "GetItem" or _deciding.get() or permissions.caller(sys._getframe(1)) in _WORKERS


def _images(call: Call, operation: str, parameters: dict[str, Any]) -> dict[str, dict[Place, Item | None]]:
    """Returns the places of the items that a call has written, by table."""
    places: dict[str, list[Place]] = {}
    for _, name, part in parts_of(operation, parameters):
        places.setdefault(name, []).append(item_of(part))
    return {name: _present(call, name, written) for name, written in places.items()}


def _present(call: Call, name: str, places: list[Place]) -> dict[Place, Item | None]:
    """Reads the items as they are now."""
    images: dict[Place, Item | None] = dict.fromkeys(places)
    for start in range(0, len(places), _READ_AT_ONCE):
        request = {"Keys": [_key(place) for place in places[start : start + _READ_AT_ONCE]], "ConsistentRead": True}
        for item in call("BatchGetItem", {"RequestItems": {name: request}})["Responses"].get(name, []):
            images[_place(item)] = item
    return images


def _place(item: Item) -> Place:
    return item["pk"]["S"], item["sk"]["S"]


def _key(place: Place) -> Item:
    return {"pk": {"S": place[0]}, "sk": {"S": place[1]}}

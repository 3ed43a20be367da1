"""Intercepts and records the calls that a client makes to DynamoDB.

Schedules and faults are built on it. It changes only the client, so the product's code runs unmodified.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from awsclient.errors import ServiceError
from controlplane.platform.table.table import table

# A schedule sets it in the threads of its acts.
when_touching: ContextVar[Callable[[], None]] = ContextVar("when touching", default=lambda: None)


def touch_outside() -> None:
    """Makes the current act's step conflict with every other one that calls this. For doubles that acts share."""
    when_touching.get()()


@dataclass(frozen=True)
class Call:
    """One client call, with the service's name for it (`TransactWriteItems`), before the client's retries."""

    operation: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        return self.operation


def item_of(part: dict[str, Any]) -> tuple[str, str]:
    """Returns the partition key and the sort key of the item that a call, or a leg or request of it, names."""
    values = part.get("Key") or part["Item"]
    return values["pk"]["S"], values["sk"]["S"]


# A transaction consists of these.
_LEGS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


def parts_of(operation: str, parameters: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields the parts of a call that concern a single item, or a query: each with its operation and its table."""
    for leg in parameters.get("TransactItems", ()):
        yield from ((_LEGS[kind], part["TableName"], part) for kind, part in leg.items())
    for name, requests in parameters.get("RequestItems", {}).items():
        parts = [{"Key": key} for key in requests["Keys"]] if operation == "BatchGetItem" else requests
        yield from ((operation, name, part) for request in parts for part in _requested(request))
    if "TableName" in parameters:
        yield operation, parameters["TableName"], parameters


def _requested(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields what a batch requests: the key of an item, or the content of a put or a deletion."""
    yield from [request] if "Key" in request else request.values()


type Proceed = Callable[[], Any]
type Around = Callable[[Call, Proceed], Any]


@contextmanager
def intercepted(client: Any, around: Around) -> Iterator[None]:
    """While open, every call of the client goes through `around(call, proceed)`, in the caller's thread.

    `around` makes the actual call with `proceed()`. Its return value or exception goes to the caller.
    """
    inner = client.call
    replaced = client.__dict__.get("call")

    def outer(operation: str, parameters: dict[str, Any]) -> Any:
        def proceed() -> Any:
            return inner(operation, parameters)

        return around(Call(operation, parameters), proceed)

    client.call = outer
    try:
        yield
    finally:
        if replaced is None:
            del client.call
        else:
            client.call = replaced


@contextmanager
def recorded_calls() -> Iterator[list[Call]]:
    """While open, appends every call of the product's table client to the list."""
    calls: list[Call] = []

    def around(call: Call, proceed: Proceed) -> Any:
        calls.append(call)
        return proceed()

    with intercepted(table.client, around):
        yield calls


def refused(client: Any, matches: Callable[[Call], bool], code: str) -> AbstractContextManager[None]:
    """While open, DynamoDB answers the calls that match with this error code."""

    def around(call: Call, proceed: Proceed) -> Any:
        if matches(call):
            raise ServiceError(call.operation, code)
        return proceed()

    return intercepted(client, around)


def is_update_of(prefix: str) -> Callable[[Call], bool]:
    """Selects updates of items in partitions with this prefix."""
    return lambda call: call.operation == "UpdateItem" and call.parameters["Key"]["pk"]["S"].startswith(prefix)


def before_the_transaction(client: Any, act: Callable[[], Any]) -> AbstractContextManager[None]:
    """While open, runs `act` once, before the first transaction: between a request's reads and its write."""
    return before(client, lambda call: call.operation == "TransactWriteItems", act)


def before_the_update_of(client: Any, attribute: str, act: Callable[[], Any]) -> AbstractContextManager[None]:
    """While open, runs `act` once, before the first update of one item that sets this attribute."""

    def is_wanted(call: Call) -> bool:
        return call.operation == "UpdateItem" and f"#{attribute} =" in call.parameters["UpdateExpression"]

    return before(client, is_wanted, act)


@contextmanager
def before(client: Any, is_wanted: Callable[[Call], bool], act: Callable[[], Any]) -> Iterator[None]:
    """While open, runs `act` once, before the first call that is wanted, which must come."""
    done = []

    def around(call: Call, proceed: Proceed) -> Any:
        if not done and is_wanted(call):
            done.append(call)
            act()
        return proceed()

    with intercepted(client, around):
        yield
    assert done, "no such call"

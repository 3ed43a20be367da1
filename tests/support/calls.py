"""The place where tests stand between the product and DynamoDB: around every call that one botocore client makes.

Schedules and faults are built on it. It changes the client and nothing of ours, so what runs is the product as it is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """One call of a client's method, as botocore names it (`TransactWriteItems`), before the SDK's own retries."""

    operation: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        return self.operation


type Proceed = Callable[[], Any]
type Around = Callable[[Call, Proceed], Any]


@contextmanager
def intercepted(client: Any, around: Around) -> Iterator[None]:
    """While open, every call of the client goes through `around(call, proceed)`, in the thread that made the call.

    `around` returns what the caller shall get, raises what it shall meet, and applies the call by `proceed()`.
    """
    inner = client._make_api_call
    replaced = client.__dict__.get("_make_api_call")

    def outer(operation: str, parameters: dict[str, Any]) -> Any:
        return around(Call(operation, parameters), lambda: inner(operation, parameters))

    client._make_api_call = outer
    try:
        yield
    finally:
        if replaced is None:
            del client._make_api_call
        else:
            client._make_api_call = replaced


@contextmanager
def meanwhile(client: Any, act: Callable[[], Any]) -> Iterator[None]:
    """While open, somebody does that between a request's reads and its transaction: once, before the first one."""
    done = []

    def around(call: Call, proceed: Proceed) -> Any:
        if call.operation == "TransactWriteItems" and not done:
            done.append(call)
            act()
        return proceed()

    with intercepted(client, around):
        yield
    assert done, "no transaction"

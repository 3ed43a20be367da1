"""Records DynamoDB calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from controlplane.platform.table.table import table
from tests.support.calls import Call, Proceed, intercepted


@contextmanager
def recorded_calls() -> Iterator[list[Call]]:
    """While open, appends every call of the product's table client to the list."""
    calls: list[Call] = []

    def around(call: Call, proceed: Proceed) -> Any:
        calls.append(call)
        return proceed()

    with intercepted(table.client, around):
        yield calls

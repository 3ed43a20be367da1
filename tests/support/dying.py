"""A function that ends in the middle of a creation with an Idempotency-Key, as at a timeout."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from controlplane.store.table import table
from tests.support.calls import Call, Proceed, intercepted


class Died(Exception):
    """The function ended here: nothing it still does reaches the table."""


@contextmanager
def dead_from(operation: str, *, applied: bool) -> Iterator[list[Call]]:
    """The function dies at its first call of that operation, before or after it is applied.

    The writes that count requests do not matter here: an `UpdateItem` is one of the record of the key.
    """
    struck: list[Call] = []

    def around(call: Call, proceed: Proceed) -> Any:
        if struck:
            raise Died
        counting = call.operation == "UpdateItem" and not call.parameters["Key"]["pk"]["S"].startswith("IDEMPOTENCY#")
        if call.operation != operation or counting:
            return proceed()
        struck.append(call)
        if applied:
            proceed()
        raise Died

    with intercepted(table.client, around):
        yield struck

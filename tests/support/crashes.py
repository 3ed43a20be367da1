"""Simulates a function that dies during a creation with an Idempotency-Key, as at a timeout."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from controlplane.platform.table.table import table
from tests.support.calls import Call, Proceed, intercepted


class Died(Exception):
    """The function died here: none of its later calls reach the table."""


@contextmanager
def dies_at(operation: str, *, applied: bool) -> Iterator[list[Call]]:
    """Kills the function at its first call of that operation, before or after the call is applied.

    Writes that count requests are ignored: an `UpdateItem` here is one of the key's idempotency record.
    """
    interrupted: list[Call] = []

    def around(call: Call, proceed: Proceed) -> Any:
        if interrupted:
            raise Died
        counting = call.operation == "UpdateItem" and not call.parameters["Key"]["pk"]["S"].startswith("IDEMPOTENCY#")
        if call.operation != operation or counting:
            return proceed()
        interrupted.append(call)
        if applied:
            proceed()
        raise Died

    with intercepted(table.client, around):
        yield interrupted

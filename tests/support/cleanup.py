"""The background of deletions, run by a test."""

from math import inf
from typing import Any
from unittest import mock

from controlplane import clock
from controlplane.store import cleanup
from controlplane.store.sweep_runs import SweepRun
from controlplane.store.table import table
from tests.support.calls import Call, Proceed, intercepted
from tests.support.sweeping import swept


def clean_up() -> int:
    """One sweep with all the time it needs; nothing fails. Returns how many deletions it has finished."""
    return swept(cleanup.finish_deletions)


def clean_up_for(positions: int) -> None:
    """One sweep whose time is up once it has stored so many positions."""
    stored: list[Call] = []

    def around(call: Call, proceed: Proceed) -> Any:
        if call.operation == "UpdateItem" and call.parameters["Key"]["pk"]["S"].startswith("DELETIONS"):
            stored.append(call)
        return proceed()

    with intercepted(table.client, around), mock.patch.object(clock, "monotonic_source", lambda: len(stored)):  # noqa: PT008
        cleanup.finish_deletions(SweepRun("Test", positions))


def clean_up_failing(failures: int) -> None:
    """One sweep in which so many deletions fail."""
    run = SweepRun("Test", inf)
    cleanup.finish_deletions(run)
    assert run.failed == failures


def finish_deletions() -> int:
    """Sweeps now, and once more when nothing that began before can still write. Returns how many were finished."""
    finished = clean_up()
    now = clock.now()
    with mock.patch.object(clock, "source", return_value=now + cleanup.SETTLED_AFTER_SECONDS + 1):
        return finished + clean_up()

"""Runs single steps of the sweep in a test, above all the cleanup of deletions."""

from math import inf
from typing import Any
from unittest import mock

from controlplane.erasure import cleanup
from controlplane.platform.core import clock
from controlplane.platform.queues.sweep_runs import Step, SweepRun
from controlplane.platform.table.table import table
from tests.support.calls import Call, Proceed, intercepted


def swept(step: Step) -> int:
    """Runs the step without a time limit and expects no failure. Returns the number of completed entries."""
    run = SweepRun("Test", inf)
    step(run)
    assert (run.failed, run.unfinished) == (0, False)
    return run.finished


def clean_up() -> int:
    """Runs one sweep without a time limit and expects no failure. Returns the number of completed deletions."""
    return swept(cleanup.finish_deletions)


def clean_up_for(positions: int) -> None:
    """Runs one sweep that times out after it has stored this number of positions."""
    stored: list[Call] = []

    def around(call: Call, proceed: Proceed) -> Any:
        if call.operation == "UpdateItem" and call.parameters["Key"]["pk"]["S"].startswith("DELETIONS"):
            stored.append(call)
        return proceed()

    with intercepted(table.client, around), mock.patch.object(clock, "monotonic_source", lambda: len(stored)):  # noqa: PT008
        cleanup.finish_deletions(SweepRun("Test", positions))


def clean_up_failing(failures: int) -> None:
    """Runs one sweep in which this number of deletions fail."""
    run = SweepRun("Test", inf)
    cleanup.finish_deletions(run)
    assert run.failed == failures


def finish_deletions() -> int:
    """Sweeps now, and again when no earlier request can still write. Returns the number of completed deletions."""
    finished = clean_up()
    now = clock.now()
    with mock.patch.object(clock, "source", return_value=now + cleanup.SETTLED_AFTER_SECONDS + 1):
        return finished + clean_up()

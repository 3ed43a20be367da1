"""One run of a step of the sweep: it visits the step's entries, each isolated from the others, until its time is up.

A step is a function that takes a `SweepRun`. It iterates over `run.entries(...)`, handles each entry inside
`run.isolating(entry)`, and adds to `run.finished`. A long-running entry checks `run.is_over` between its own pages.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from controlplane.platform.core import clock
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Put, Unrecorded, table

_PAGE = 100

type Step = Callable[[SweepRun], None]


class SweepRun:
    """The results of one run of a step: entries finished and failed, and whether it ran out of time."""

    def __init__(self, step: str, ends_at: float) -> None:
        """ends_at: in seconds of `clock.monotonic`."""
        self.step = step
        self.finished = 0
        self.failed = 0
        self.unfinished = False
        self._ends_at = ends_at

    @property
    def is_over(self) -> bool:
        """Returns whether the run's time is up."""
        return clock.monotonic() >= self._ends_at

    @contextmanager
    def isolating(self, entry: Mapping[str, Any]) -> Iterator[None]:
        """Counts and logs an exception of the block instead of raising it, so that the run continues."""
        try:
            yield
        except Exception as failure:  # noqa: BLE001 (whatever is wrong with one entry must not stop the others)
            self.failed += 1
            place = {"partition": entry["pk"], "entry": entry["sk"]}
            logger.error("entry failed", extra={"step": self.step, **place, **describe(failure)})

    def entries(self, partitions: Sequence[str], *, before: str | None = None) -> Iterator[dict[str, Any]]:
        """Yields the items of the partitions whose sort key is below `before`, in the order of the sort key.

        If the time is up it stops and stores its position, and the next run continues there: entries that fail every
        time can't keep a run from ever reaching those behind them. A partition that can't be read is skipped; the
        error is raised after the last partition. Eventually consistent: the next run sees what this one misses.
        """
        key = keys.sweep_position(self.step)
        position = table.get(key)
        first, after = 0, None
        if position is not None and position["partition"] in partitions:
            first, after = partitions.index(position["partition"]), position["after"]
        errors: list[Exception] = []
        for number, pk in enumerate(partitions[first:], first + 1):
            try:
                for item in _due(pk, after, before):
                    if self.is_over:
                        self._stop_at(pk, after)
                        return
                    yield item
                    after = item["sk"]
            except Exception as failure:  # noqa: BLE001 (one throttled partition must not hide the others)
                logger.error("partition not read", extra={"step": self.step, "partition": pk, **describe(failure)})
                errors.append(failure)
            after = None
            if self.is_over and number < len(partitions):
                self._stop_at(partitions[number], None)
                return
        if position is not None:
            table.delete(Delete(key), Unrecorded.PROGRESS)
        if errors:
            raise errors[0]

    def _stop_at(self, pk: str, after: str | None) -> None:
        self.unfinished = True
        table.put(
            Put({**keys.sweep_position(self.step)._asdict(), "partition": pk, "after": after}), Unrecorded.PROGRESS
        )


def _due(pk: str, after: str | None, before: str | None) -> Iterator[dict[str, Any]]:
    while True:
        page = table.query(pk, after=after, limit=_PAGE)
        for item in page.items:
            if before is not None and item["sk"] >= before:
                return
            yield item
        after = page.next_sk
        if after is None:
            return

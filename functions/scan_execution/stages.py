"""The stages of a scan as their clients see them: each is reported when it starts, advances, and is completed.

Every report is a write under the lease, so a worker that has lost it stops at its next report.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from controlplane.platform.core import clock
from controlplane.platform.table.leases import Lease
from controlplane.scans import execution
from controlplane.scans.inventories import stored_leg
from controlplane.scans.items import ScanItem, Stage
from openassent_analysis.inventory.inventories import Inventory
from openassent_analysis.report import ANOTHER_LOOK, Answer, Examine, Request

# Each report is a write to the scan and its three indexes.
SECONDS_BETWEEN_REPORTS: Final = 5.0


class Stages:
    """Reports the stages of one attempt. All methods raise leases.LeaseLost."""

    def __init__(self, lease: Lease, scan: ScanItem) -> None:
        self._lease = lease
        self._scan_id = scan.scan_id
        # An earlier attempt may have completed stages that this one runs again.
        self._reached = scan.progress.completed_stages
        self._inventory: Inventory | None = None

    @contextmanager
    def run(self, stage: Stage) -> Iterator[None]:
        """Reports the stage as running, then as completed, together with the inventory if the stage has changed it."""
        execution.report_stage(self._lease, stage, "running", reached=self._reached)
        yield
        inventory, self._inventory = self._inventory, None
        if inventory is None:
            execution.report_stage(self._lease, stage, "completed", reached=self._reached)
        else:
            leg = stored_leg(self._scan_id, inventory)
            execution.complete_stage(self._lease, stage, leg, reached=self._reached)

    def keep(self, inventory: Inventory) -> None:
        """Stores the inventory when the current stage is completed."""
        self._inventory = inventory

    def counting(self, examine: Examine, total: int) -> Examine:
        """Returns `examine` for the stage `analyze`. Reports how many of the files are analyzed every few seconds.

        Doesn't count a file again if another look at it is needed.
        """
        done = 0

        def counted(requests: Iterator[Request], deadline: float) -> Iterator[Answer]:
            nonlocal done
            reported_at = clock.monotonic()
            for answer in examine(requests, deadline):
                yield answer
                done += not answer[0].language.startswith(ANOTHER_LOOK)
                if clock.monotonic() - reported_at >= SECONDS_BETWEEN_REPORTS:
                    reported_at = clock.monotonic()
                    files = done, max(done, total)
                    execution.report_stage(self._lease, "analyze", "running", reached=self._reached, files=files)

        return counted

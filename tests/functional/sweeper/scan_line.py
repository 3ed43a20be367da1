"""A scan from request to published findings, with workers that tests can kill and a clock that tests set."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from controlplane.findings import inbox
from controlplane.findings.items import InboxItem
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.leases import MAX_ATTEMPTS
from controlplane.platform.table.table import Delete, table
from controlplane.scans import failures, reads
from controlplane.scans.items import ScanItem
from tests.functional.scan_execution.repeated_scans import PAGE
from tests.support.api import Api, Reply
from tests.support.audits import preparation_worker, scan_worker, serving, stored_repository
from tests.support.cleanup import swept
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.outcomes import Aborted
from tests.support.sqs import FakeSqs, SqsMessage
from tests.support.table import PREPARED
from tests.support.world import World

FILES: dict[str, str | bytes] = {"index.html": PAGE}
FINDINGS = 6
# The queues' visibility timeouts in template.yaml.
VISIBILITY_SECONDS = {Queue.SCAN_PREPARATION: 180, Queue.SCAN_EXECUTION: 2_520}
_STEP_SECONDS = 240
_LONGEST_SECONDS = 4 * 3_600


class Died(Aborted):
    """The worker's process died here."""


class DyingHost(FakeHost):
    """Kills the calling worker a given number of times per operation."""

    deaths: dict[str, int]

    def _fail(self, operation: str) -> None:
        super()._fail(operation)
        if self.deaths.get(operation, 0) > 0:
            self.deaths[operation] -= 1
            raise Died


class ScanLine:
    """A company with one repository. `redelivers` and `sweeps` select what retries the work of dead workers."""

    def __init__(self, world: World, api: Api, sqs: FakeSqs, set_clock: Callable[[float], None], at: float) -> None:
        self.world, self.api, self.sqs = world, api, sqs
        self._set_clock, self._at = set_clock, at
        set_clock(at)
        self.company = world.company("free")
        self.repository = world.connected_repository(self.company)
        served = serving(self.repository, archive(FILES))
        self.host = DyingHost(served.heads, {SHA: served.archives[SHA]})
        self.host.deaths = {}
        self.redelivers = self.sweeps = True

    # Actions

    def start(self) -> Reply:
        path = f"/v1/code-audit/scans?organizationId={self.company.organization_id}"
        token = self.world.token(self.company.owner.user_id)  # a new session: days may have passed
        return self.api.post(path, token, json_body={"repositoryId": self.repository.repository_id})

    def unlock(self) -> Reply:
        return self.api.post(
            f"/v1/code-audit/scans/{self.scan().scan_id}/unlock", self.world.token(self.company.owner.user_id)
        )

    def deliver(self, queue: Queue) -> None:
        """Delivers the queue's oldest message to its worker. Raises the exception that the worker died of."""
        self._deliver(queue, self.sqs.due(queue.url)[0])

    def _deliver(self, queue: Queue, letter: SqsMessage) -> None:
        self.sqs.visibility_seconds = VISIBILITY_SECONDS[queue] if self.redelivers else _LONGEST_SECONDS * 99
        worker = preparation_worker if queue is Queue.SCAN_PREPARATION else scan_worker
        self.sqs.deliver(letter, worker(self.host), queue.dead_letters_url)

    def deliver_due(self) -> None:
        """Delivers all due messages, including those that result. Ignores workers that die."""
        for queue in VISIBILITY_SECONDS:
            for letter in self.sqs.due(queue.url):
                with suppress(Aborted):
                    self._deliver(queue, letter)

    def redeliver(self) -> None:
        """Makes every undeleted message due."""
        for letter in self.sqs.letters:
            letter.visible_at = self._at

    def forget_unsent(self) -> None:
        """Deletes the outbox entries, as if their messages had been sent and lost by the queues."""
        for item in self.unsent:
            table.delete(Delete(keys.Key(item["pk"], item["sk"])), PREPARED)

    def sweep(self) -> None:
        swept(messages.resend)
        swept(failures.recover_scans)

    def wait(self, seconds: float) -> None:
        self._at += seconds
        self._set_clock(self._at)

    def run_to_the_end(self) -> None:
        """Delivers and sweeps while time passes, until no scan is requested, waiting, or running."""
        ends_at = self._at + _LONGEST_SECONDS
        while True:
            self.deliver_due()
            is_open = bool(self.active or self.unsent)
            waits_until = self._redelivered_at()
            if not is_open and waits_until is None:
                return
            assert self._at < ends_at, "the scan never ended"
            self.wait(_STEP_SECONDS if is_open or waits_until is None else waits_until - self._at)
            if self.sweeps and is_open:
                self.sweep()

    def _redelivered_at(self) -> float | None:
        times = [letter.visible_at for queue in VISIBILITY_SECONDS for letter in self.sqs.at(queue.url)]
        return min(times) if times and self.redelivers else None

    # Checks

    @property
    def active(self) -> str | None:
        """The active request of the repository."""
        return stored_repository(self.repository).get("activeRequestId")

    @property
    def unsent(self) -> list[dict[str, Any]]:
        return [item for pk in keys.OUTBOX_PKS for item in table.query(pk, consistent=True).items]

    def watches(self) -> int:
        return sum(len(table.query(pk, consistent=True).items) for pk in keys.SCAN_WATCH_PKS)

    def work(self) -> dict[str, Any]:
        """Returns the item of the scan or, until it exists, of its request."""
        pk = keys.organization_pk(self.company.organization_id)
        for prefix in (keys.SCAN_PREFIX, "SCANREQ#"):
            items = table.query(pk, prefix=prefix, consistent=True).items
            if items:
                (item,) = items
                return item
        raise LookupError("nothing was asked for")

    def scan(self) -> ScanItem:
        (scan,) = reads.list_scans(self.company.organization_id, 10, None).items
        return reads.get_scan(scan.scan_id)

    def published(self) -> list[InboxItem]:
        return inbox.list_items(self.company.organization_id, None, 100, None).items

    def dead_letters(self) -> list[SqsMessage]:
        return [letter for queue in VISIBILITY_SECONDS for letter in self.sqs.at(queue.dead_letters_url)]

    def check_end(self) -> None:
        """Checks that the repository is free, and that nothing is left to send or to watch."""
        assert self.active is None
        assert (self.unsent, self.watches()) == ([], 0)
        assert self.work()["status"] in {"completed", "failed"}
        assert self.work()["attempts"] <= MAX_ATTEMPTS

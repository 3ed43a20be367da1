"""Pull requests that are scanned, and the reports on them. A report has one writer at a time, with a claim."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from controlplane.platform.core import clock
from controlplane.platform.core.ids import ProjectId, RepositoryId, ScanId, ScanRequestId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import Queue, ReportPullRequest
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys, leases
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import Leg, Put, Unrecorded, Update, set_expression
from controlplane.platform.table.retry import ConditionFailed, retry_on_conflict
from controlplane.platform.table.stored import SPARSE, StoredItem
from controlplane.platform.table.table import table

_REPORTED_SECONDS = 86_400
# Longer than the worker's timeout, so that a claim that has expired is one of a dead worker.
_CLAIM_SECONDS = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestItem(StoredItem):
    """A pull request of a project. `head_sha` is the commit that is to be scanned or was scanned last.

    request_id, scan_id: the scan of that commit; both are None while it waits in the queue.
    checks: what was reported as check runs, by commit: the check run's id, and a digest of what it shows.
    creating: what was sent to be created, without knowing its id, and when.
    reviewed_sha: the last commit with a review that suggests fixes. suggested: fingerprints of the findings in reviews.
    """

    repository_id: RepositoryId
    project_id: ProjectId
    number: int
    head_sha: str
    marker: str = field(default_factory=lambda: secrets.token_hex(16))
    request_id: Annotated[ScanRequestId | None, SPARSE] = None
    scan_id: Annotated[ScanId | None, SPARSE] = None
    closed: Annotated[bool, SPARSE] = False
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    comment_id: Annotated[int | None, SPARSE] = None
    comment: Annotated[str | None, SPARSE] = None
    creating: Annotated[Mapping[str, Any] | None, SPARSE] = None
    reviewed_sha: Annotated[str | None, SPARSE] = None
    suggested: Annotated[tuple[str, ...], SPARSE] = ()

    @property
    def key(self) -> Key:
        return keys.pull_request(self.repository_id, self.number, self.project_id.local)


def report_entry(repository_id: RepositoryId, project_id: ProjectId, number: int) -> Entry:
    """Returns the message that makes the worker report on the pull request."""
    until = int(clock.now()) + _REPORTED_SECONDS
    report = ReportPullRequest(repository_id=repository_id, project_id=project_id, number=number, until=until)
    return messages.entry(Queue.GITHUB_EVENTS, report)


def find(repository_id: RepositoryId, project_id: ProjectId, number: int) -> PullRequestItem | None:
    """Returns the pull request, or None if it was never scanned. Consistent."""
    return table.find(keys.pull_request(repository_id, number, project_id.local), PullRequestItem.from_item)


def list_by_number(repository_id: RepositoryId, number: int) -> list[PullRequestItem]:
    """Returns the pull request for each project that it was scanned for. Consistent."""
    prefix = keys.pull_request_prefix(number)
    page = table.query(keys.finding_history_pk(repository_id), prefix=prefix, consistent=True)
    return [PullRequestItem.from_item(item) for item in page.items]


def want_scan(item: PullRequestItem, queued: Put, message: Entry, *, again: bool) -> bool:
    """Queues a scan of the head commit, with the message that reports it. Returns False if it was wanted before.

    again: also if the commit was scanned. Keeps what was reported before.
    """

    def write() -> bool:
        stored = table.get(item.key)
        legs: dict[str, Leg] = {"queued": queued, "message": message.leg}
        if stored is None:
            legs = {"pullRequest": Put(item.to_item(), "attribute_not_exists(pk)"), **legs}
        else:
            before = PullRequestItem.from_item(stored)
            if before.head_sha == item.head_sha and not before.closed and not again:
                return False
            change = "SET #headSha = :sha REMOVE #requestId, #scanId, #closed"
            when, values = _as_read(before)
            legs = {"pullRequest": Update(item.key, change, when, {**values, "sha": item.head_sha}), **legs}
        table.transact_or_retry(legs, Unrecorded.MESSAGE)
        return True

    return retry_on_conflict(write, "the pull request")


def _as_read(item: PullRequestItem) -> tuple[str, dict[str, Any]]:
    """Returns the condition that the scan of the pull request is still the one that was read."""
    when, values = "#headSha = :readSha", {"readSha": item.head_sha}
    for name, value in (("requestId", item.request_id), ("scanId", item.scan_id)):
        if value is None:
            when += f" AND attribute_not_exists(#{name})"
        else:
            when, values = f"{when} AND #{name} = :read{name}", {**values, f"read{name}": value}
    return when, values


def close(item: PullRequestItem, message: Entry) -> None:
    """Records that the pull request is closed, with the message that reports it."""
    closed = Update(item.key, "SET #closed = :true", "attribute_exists(pk)", {"true": True})
    table.transact({"pullRequest": closed, "message": message.leg}, Unrecorded.MESSAGE)


def requested_leg(key: Key, request_id: ScanRequestId) -> Update:
    """Returns the leg that names the request of the pull request's scan."""
    return Update(key, "SET #requestId = :request REMOVE #scanId", "attribute_exists(pk)", {"request": request_id})


def started_leg(key: Key, request_id: ScanRequestId, scan_id: ScanId, head_sha: str) -> Update:
    """Returns the leg that names the pull request's scan, and the commit that it scans."""
    values = {"request": request_id, "scan": scan_id, "sha": head_sha}
    return Update(key, "SET #scanId = :scan, #headSha = :sha", "#requestId = :request", values)


def claim(key: Key) -> tuple[str, PullRequestItem] | None:
    """Returns a claim on the pull request's report with its item, or None if it is gone. Raises leases.Held."""
    now = int(clock.now())
    claimed = secrets.token_hex(8)
    values = {"claim": claimed, "until": now + _CLAIM_SECONDS, "now": now}
    when = "attribute_exists(pk) AND (attribute_not_exists(#claimedUntil) OR #claimedUntil <= :now)"
    try:
        item = table.update(
            Update(key, "SET #claim = :claim, #claimedUntil = :until", when, values), Unrecorded.MESSAGE
        )
    except ConditionFailed as failure:
        if failure.item is None:
            return None
        if failure.item.get("claim") != claimed:  # if equal, our own write, whose response was lost
            raise leases.Held(failure.item["claimedUntil"] - now) from None
        item = failure.item
    return claimed, PullRequestItem.from_item(item)


def record(key: Key, claimed: str, **values: Any) -> None:
    """Stores the report's state; None removes an attribute. Raises leases.LeaseLost."""
    changed = {name: value for name, value in values.items() if value is not None}
    removed = ", ".join(f"#{name}" for name, value in values.items() if value is None)
    change = (set_expression(changed) if changed else "") + (f" REMOVE {removed}" if removed else "")
    try:
        table.update(Update(key, change, "#claim = :claim", {**changed, "claim": claimed}), Unrecorded.MESSAGE)
    except ConditionFailed:
        raise leases.LeaseLost from None


def release(key: Key, claimed: str) -> None:
    """Ends the claim, if it is still held."""
    try:
        record(key, claimed, claim=None, claimedUntil=None)
    except leases.LeaseLost:
        return

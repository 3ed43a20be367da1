"""The rules of `github_events`: the reaction to each event.

An event says what may have changed. The current state is read from GitHub, so events may be late, repeated, and out
of order, and the last one that is processed leaves the current state.
"""

from collections.abc import Callable, Iterator

from controlplane.code_host import installations, repositories
from controlplane.code_host.github import client
from controlplane.code_host.github.errors import AccessLost, BranchGone, InvalidName, IssueGone, Refused, RepositoryGone
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.code_host.requests import retried_later
from controlplane.findings import issue_attempts
from controlplane.platform.core import clock
from controlplane.platform.core.ids import RepositoryId
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.queues.messages import HostEvent, HostEventName, ReportPullRequest, ref_digest
from controlplane.platform.queues.worker import Delayed, Postponed, Rejected, is_last_delivery
from controlplane.scans import queue, reads
from controlplane.scans.items import Cause, QueuedScan
from controlplane.scans.queue import start_next
from github_events import access, pull_requests, reports
from github_events.access import find_connected

_UNAVAILABLE_SECONDS = 60

# The App was uninstalled or lacks a permission, or the event's subject is gone: there is nothing left to do.
_OUT_OF_REACH = (AccessLost, RepositoryGone, InvalidName, Refused)


def process(message: HostEvent | ReportPullRequest) -> None:
    """Handles the event, or reports on a pull request.

    A message that GitHub doesn't let us process is retried for a day, which is longer than the queue retries: one that
    is delivered for the last time is sent again by the sweeper. If GitHub limits the requests of an installation, its
    other messages wait too, and those of other installations don't. Raises Postponed, Delayed, Rejected.
    """
    if isinstance(message, HostEvent):
        _process_within_limits(message, message.installation_id, lambda: _RULES[message.event](message))
    elif repository := repositories.find_repository(RepositoryId.stored(message.repository_id)):
        _process_within_limits(message, repository.installation_id, lambda: reports.report(message, repository))


def find_organization(message: HostEvent | ReportPullRequest) -> str | None:
    """Returns the organization that the event's installation belongs to, or None."""
    return installations.find_organization(message.installation_id) if isinstance(message, HostEvent) else None


def _catch_up(repository: RepositoryItem) -> None:
    """Scans commits that were pushed while our App had no access: GitHub sent no events about them."""
    scan_newest(repository)
    pull_requests.scan_open(repository)


def _process_within_limits(
    message: HostEvent | ReportPullRequest, installation_id: int, rule: Callable[[], None]
) -> None:
    try:
        with retried_later(installation_id, _UNAVAILABLE_SECONDS):
            _within_reach(rule)
    except (Postponed, Delayed) as later:
        if clock.now() >= message.until:
            raise Rejected(later.reason) from later
        if is_last_delivery():
            raise Delayed(later.seconds, later.reason) from later
        raise


def _within_reach(rule: Callable[[], None]) -> None:
    try:
        rule()
    except _OUT_OF_REACH as error:
        if isinstance(error, Refused) and error.status == 401:
            raise  # GitHub rejects the App's key, which an operator has to replace
        logger.info("out of reach", extra={**describe(error), **error.context})


def follow_issue(event: HostEvent) -> None:
    """Records in the inbox items whether their issue is closed. Raises the errors of `github`."""
    number = event.subject or 0
    for repository in find_connected(event):
        item_ids = issue_attempts.find_items(repository.repository_id, number)
        if not item_ids:
            continue
        host = client.connect(repository.installation_id)
        try:
            issue = host.get_issue(repository.owner, repository.name, number)
        except IssueGone:
            continue
        for item_id in item_ids:
            issue_attempts.record_state(item_id, number, is_open=issue.is_open)


def follow_push(event: HostEvent) -> None:
    """Queues a scan for each link that wants one after a push to its branch. Raises the errors of `github`."""
    for repository in find_connected(event):
        for link, branch in _scanned_on_push(repository):
            if ref_digest(f"refs/heads/{branch}") == event.ref:
                _scan_pushed(repository, link, branch)
        start_next(repository.repository_id)


def scan_newest(repository: RepositoryItem) -> None:
    """Queues a scan for each link that wants one after pushes, unless its branch's head was scanned."""
    for link, branch in _scanned_on_push(repository):
        _scan_pushed(repository, link, branch)


def _scanned_on_push(repository: RepositoryItem) -> Iterator[tuple[Link, str]]:
    """Yields each link that wants a scan after a push, and its branch."""
    for link in repository.links:
        branch = link.production_branch or repository.default_branch
        if link.scan_on_push and branch is not None:
            yield link, branch


def _scan_pushed(repository: RepositoryItem, link: Link, branch: str) -> None:
    """Queues a scan, unless the branch's head was scanned or is being scanned.

    An active scan of an older commit is left to finish. If pushes canceled it, frequent pushes would keep every scan
    from completing.
    """
    host = client.connect(repository.installation_id)
    try:
        head = host.get_branch_head(repository.owner, repository.name, branch)
    except BranchGone:
        return
    last = reads.find_production_scan(repository.repository_id, link.project_id)
    if last is not None and last.head_commit_sha == head and (last.is_open or last.status == "completed"):
        return
    queue.enqueue(QueuedScan.of(repository.repository_id, link.project_id, Cause("push")))


_RULES: dict[HostEventName, Callable[[HostEvent], None]] = {
    "installation": lambda event: access.refresh(event, _catch_up),
    "repository": access.refresh,
    "push": follow_push,
    "pull_request": pull_requests.follow,
    "check_run": pull_requests.run_again,
    "issues": follow_issue,
}

"""Pull requests: which of them are scanned, and which scans are canceled because there is a newer commit."""

from controlplane.code_host import pull_requests
from controlplane.code_host.github import reviews
from controlplane.code_host.github.reviews import PullRequest
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.code_host.pull_requests import PullRequestItem, report_entry
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import HostEvent
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from controlplane.scans import failures, queue, reads
from controlplane.scans.failures import superseded_by
from controlplane.scans.items import Cause, QueuedScan, Work
from controlplane.scans.queue import is_wanted, start_next
from github_events.access import find_connected
from github_events.reports import external_id, parse_external_id


def follow(event: HostEvent) -> None:
    """Scans the pull request's head commit for each link that wants it, or cancels its scans if it is closed.

    Raises the errors of `github`.
    """
    number = event.subject or 0
    for repository in find_connected(event):
        host = reviews.connect(repository.installation_id)
        found = host.get_pull_request(repository.owner, repository.name, number)
        if found.is_open:
            for link in _wanting(repository, number):
                _scan(repository, link, found, again=False)
        else:
            _close(repository, number)
        start_next(repository.repository_id)


def scan_open(repository: RepositoryItem) -> None:
    """Scans the head commits of all open pull requests without a scan, or whose scan lacked access."""
    links = _wanting(repository, 0)
    if not links:
        return
    for found in reviews.connect(repository.installation_id).list_open_pull_requests(repository.owner, repository.name):
        for link in links:
            item = pull_requests.find(repository.repository_id, link.project_id, found.number)
            _scan(repository, link, found, again=item is not None and _can_succeed_now(item))


def _can_succeed_now(item: PullRequestItem) -> bool:
    """Returns whether the pull request's scan failed for a reason that passes without anyone's help."""
    work = _find_work(item)
    return work is not None and work.failure is not None and work.failure.code in failures.RETRY_SECONDS


def run_again(event: HostEvent) -> None:
    """Scans a pull request again, after a person has asked GitHub to rerun its check. Raises the errors of `github`."""
    for repository in find_connected(event):
        host = reviews.connect(repository.installation_id)
        run = host.get_check_run(repository.owner, repository.name, event.subject or 0)
        named = parse_external_id(run.external_id)
        item = pull_requests.find(repository.repository_id, *named) if named else None
        # The external ID of a check run counts only if our App has created it.
        if item is None or run.external_id != external_id(item):
            continue
        if run.check_run_id not in [check["id"] for check in item.checks.values()] or _is_being_scanned(item):
            continue
        found = host.get_pull_request(repository.owner, repository.name, item.number)
        for link in _wanting(repository, item.number):
            if link.project_id == item.project_id and found.is_open:
                _scan(repository, link, found, again=True)
        start_next(repository.repository_id)


def _wanting(repository: RepositoryItem, number: int) -> list[Link]:
    organization = table.get(keys.organization(repository.organization_id))
    plan = organization["plan"] if organization else None
    cause = Cause("pull_request", number)
    return [link for link in repository.links if plan is not None and is_wanted(cause, link, plan)]


def _is_being_scanned(item: PullRequestItem) -> bool:
    """Returns whether the pull request's scan hasn't ended."""
    work = _find_work(item)
    return work is None or work.is_open


def _find_work(item: PullRequestItem) -> Work | None:
    """Returns the pull request's scan, or the request for it."""
    work_id = item.scan_id or item.request_id
    return reads.find_work(work_id) if work_id else None


def _scan(repository: RepositoryItem, link: Link, found: PullRequest, *, again: bool) -> None:
    repository_id, project_id = repository.repository_id, link.project_id
    item = PullRequestItem(
        repository_id=repository_id, project_id=project_id, number=found.number, head_sha=found.head_sha
    )
    queued = QueuedScan.of(repository_id, project_id, Cause("pull_request", found.number))
    report = report_entry(repository_id, project_id, found.number)
    is_new = pull_requests.want_scan(item, Put(queued.to_item()), report, again=again)
    # Also if it was wanted before: the process that wrote it may have crashed then.
    _cancel_superseded(repository, project_id, found.number)
    if is_new:
        messages.dispatch(report)


def _close(repository: RepositoryItem, number: int) -> None:
    for item in pull_requests.list_by_number(repository.repository_id, number):
        queue.drop_subject(repository.repository_id, item.project_id, Cause("pull_request", number))
        if not item.closed:
            report = report_entry(repository.repository_id, item.project_id, number)
            pull_requests.close(item, report)
            messages.dispatch(report)
        _cancel_superseded(repository, item.project_id, number)


def _cancel_superseded(repository: RepositoryItem, project_id: ProjectId, number: int) -> None:
    """Cancels the repository's active scan if it is an outdated one of this pull request."""
    work = reads.find_active_work(repository.key)
    if work is None or work.project_id != project_id or work.cause.pull_request_number != number:
        return
    item = pull_requests.find(repository.repository_id, project_id, number)
    if item is None or item.closed:
        failures.cancel_superseded(work, "The pull request was closed.")
    elif item.request_id != work.request_id:
        failures.cancel_superseded(work, superseded_by(item.head_sha))

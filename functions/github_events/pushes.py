"""Pushes: a scan of the production branch, for links that want one."""

from collections.abc import Iterator

from controlplane.code_host.github import client
from controlplane.code_host.github.errors import BranchGone
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.queues.messages import HostEvent, ref_digest
from controlplane.scans import queue, reads
from controlplane.scans.items import Cause, QueuedScan
from controlplane.scans.queue import start_next
from github_events.access import find_connected


def follow(event: HostEvent) -> None:
    """Queues a scan for each link that wants one after a push to its branch. Raises the errors of `github`."""
    for repository in find_connected(event):
        for link, branch in _scanned_on_push(repository):
            if ref_digest(f"refs/heads/{branch}") == event.ref:
                _scan(repository, link, branch)
        start_next(repository.repository_id)


def scan_newest(repository: RepositoryItem) -> None:
    """Queues a scan for each link that wants one after pushes, unless its branch's head was scanned."""
    for link, branch in _scanned_on_push(repository):
        _scan(repository, link, branch)


def _scanned_on_push(repository: RepositoryItem) -> Iterator[tuple[Link, str]]:
    """Yields each link that wants a scan after a push, and its branch."""
    for link in repository.links:
        branch = link.production_branch or repository.default_branch
        if link.scan_on_push and branch is not None:
            yield link, branch


def _scan(repository: RepositoryItem, link: Link, branch: str) -> None:
    """Queues a scan, unless the branch's head was scanned or is being scanned."""
    host = client.connect(repository.installation_id)
    try:
        head = host.get_branch_head(repository.owner, repository.name, branch)
    except BranchGone:
        return
    last = reads.find_production_scan(repository.repository_id, link.project_id)
    if last is not None and last.head_commit_sha == head and (last.is_open or last.status == "completed"):
        return
    queue.enqueue(QueuedScan.of(repository.repository_id, link.project_id, Cause("push")))

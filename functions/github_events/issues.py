"""Issues that were opened for findings: whether they are closed."""

from controlplane.github import reviews
from controlplane.queues.messages import HostEvent
from controlplane.store import opened_issues
from github_events.access import find_connected


def follow(event: HostEvent) -> None:
    """Records in the inbox item whether its issue is closed. Raises the errors of `github`."""
    number = event.subject or 0
    for repository in find_connected(event):
        item_id = opened_issues.find_item(repository.repository_id, number)
        if item_id is not None:
            host = reviews.connect(repository.installation_id)
            is_open = host.is_issue_open(repository.owner, repository.name, number)
            opened_issues.record_state(item_id, number, is_open=is_open)

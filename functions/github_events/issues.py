"""Issues that were opened for findings, or linked to them: whether they are closed."""

from controlplane.code_host.github import client
from controlplane.code_host.github.errors import IssueGone
from controlplane.findings import opened_issues
from controlplane.platform.queues.messages import HostEvent
from github_events.access import find_connected


def follow(event: HostEvent) -> None:
    """Records in the inbox items whether their issue is closed. Raises the errors of `github`."""
    number = event.subject or 0
    for repository in find_connected(event):
        item_ids = opened_issues.find_items(repository.repository_id, number)
        if not item_ids:
            continue
        host = client.connect(repository.installation_id)
        try:
            issue = host.get_issue(repository.owner, repository.name, number)
        except IssueGone:
            continue
        for item_id in item_ids:
            opened_issues.record_state(item_id, number, is_open=issue.is_open)

"""Business rules of `inbox`: when an issue can be opened for a finding, and how long a request waits for it.

`store.issue_attempts` describes the life cycle of an attempt, `issue_creation` is the worker that opens the issue.
"""

from collections.abc import Iterator

from controlplane.core import clock
from controlplane.core.errors import ApiError, Conflict
from controlplane.core.ids import InboxItemId
from controlplane.core.settings import settings
from controlplane.queues import issue_messages
from controlplane.store import inbox, issue_attempts, repositories, waiting
from controlplane.store.inbox_items import InboxItem
from controlplane.store.issue_attempts import AttemptItem

# Polls often at first, because GitHub usually responds within a second.
_FIRST_PAUSES_SECONDS = (0.2, 0.3, 0.5)
_PAUSE_SECONDS = 1.0
# If the attempt is older than this, an earlier request has already waited for it, so this one returns immediately.
_OLD_ATTEMPT_SECONDS = 30
# Reasons of `issue_creation` for which we no longer have access to the repository.
_NO_ACCESS = {"repository-not-connected", "repository-gone", "access-lost"}


class NotACodeFinding(Conflict):
    message = "Issues can be opened only for code-audit findings. This item has a different source."

    def __init__(self, source: str) -> None:
        super().__init__(details={"reason": "not_a_code_finding", "source": source})


class FindingsLocked(Conflict):
    """The item announces locked findings, and isn't one."""

    message = "This item announces locked findings. Unlock the scan's report, then open issues for its findings."

    def __init__(self, scan_id: str) -> None:
        super().__init__(details={"reason": "findings_locked", "scanId": scan_id})


class RepositoryNotLinked(ApiError):
    code = "REPOSITORY_NOT_LINKED"
    message = "The finding's repository isn't connected and linked to a project. Ask an admin to do that."

    def __init__(self, repository_id: str | None) -> None:
        super().__init__(details={"repositoryId": repository_id})


class CreationPending(Conflict):
    """The outcome of the attempt to open the issue isn't known yet."""

    message = "The issue is being opened. Retry later: a retry never opens a second issue."

    def __init__(self) -> None:
        super().__init__(details={"status": "creation_pending"}, headers={"Retry-After": "10"})


class CreationRefused(Conflict):
    """The code host rejected the issue, for a reason that persists until it is fixed there."""

    message = "The code host rejected the issue. See details.reason, fix it there, then retry."

    def __init__(self, reason: str) -> None:
        super().__init__(details={"status": "creation_refused", "reason": reason.replace("-", "_")})


async def open_issue(item: InboxItem, user_id: str) -> InboxItem:
    """Returns the item with its issue, and opens the issue if there isn't one.

    Raises NotACodeFinding, FindingsLocked, RepositoryNotLinked, CreationPending, CreationRefused, RoleLost, and
    UnknownItem.
    """
    if item.github_issue is not None:
        return item
    _require_linked_repository(item)
    try:
        attempt = issue_messages.request_issue(item.item_id, user_id)
    except issue_attempts.IssueExists:
        return inbox.get_item(item.item_id)
    wait_seconds = _wait_seconds(attempt)
    with waiting.slot(wait_seconds) as may_wait:
        for pause_seconds in _pauses(wait_seconds if may_wait else 0):
            await clock.pause(pause_seconds)
            opened = _find_opened(item.item_id)
            if opened is not None:
                return opened
    raise CreationPending


def _require_linked_repository(item: InboxItem) -> None:
    """Raises NotACodeFinding, FindingsLocked, or RepositoryNotLinked if an issue can't be opened for the item."""
    if item.source != "code-audit":
        raise NotACodeFinding(item.source)
    if item.locked_findings is not None:
        raise FindingsLocked(item.locked_findings.scan_id)
    repository = repositories.find_repository(item.repository_id) if item.repository_id else None
    if repository is None or not repository.links:
        raise RepositoryNotLinked(item.repository_id)


def _wait_seconds(attempt: AttemptItem) -> float:
    is_old = attempt.requested_at < clock.timestamp(clock.now() - _OLD_ATTEMPT_SECONDS)
    return 0.0 if is_old else settings.issue_wait_seconds


def _pauses(left: float) -> Iterator[float]:
    """Yields the pauses before each poll, at least one, which add up to `left` seconds."""
    for seconds in _FIRST_PAUSES_SECONDS:
        yield min(seconds, left)
        left -= seconds
        if left <= 0:
            return
    while left > 0:
        yield min(_PAUSE_SECONDS, left)
        left -= _PAUSE_SECONDS


def _find_opened(item_id: InboxItemId) -> InboxItem | None:
    """Returns the item if it has its issue, or None while the attempt is pending.

    Raises CreationRefused, RepositoryNotLinked, and UnknownItem if the item was deleted.
    """
    progress = issue_attempts.find_progress(item_id)
    if progress is None:
        raise inbox.UnknownItem
    if progress.item.github_issue is not None:
        return progress.item
    if progress.attempt is not None:
        return None
    reason = progress.refusal.reason if progress.refusal else ""
    if reason in _NO_ACCESS:
        raise RepositoryNotLinked(progress.item.repository_id)
    raise CreationRefused(reason)

"""Business rules of `inbox`: optimistic locking of status changes, and opening an issue for a finding."""

from collections.abc import Iterator

from controlplane.core import clock
from controlplane.core.errors import ApiError, Conflict, Forbidden, NotFound
from controlplane.core.settings import settings
from controlplane.queues.issue_messages import try_to_announce
from controlplane.store import inbox, issue_attempts, repositories, waiting
from controlplane.store.inbox import InboxItem
from controlplane.store.issue_attempts import Attempt
from inbox.schemas import InboxItemUpdate

# Polls often at first, because GitHub usually responds within a second.
_FIRST_PAUSES_SECONDS = (0.2, 0.3, 0.5)
_PAUSE_SECONDS = 1.0
# If the attempt is older than this, an earlier request has already waited for it, so this one returns immediately.
_OLD_ATTEMPT_SECONDS = 30
# Reasons of `issue_creation` for which we no longer have access to the repository.
_NO_ACCESS = {"repository-not-connected", "repository-gone", "access-lost"}


class StaleVersion(Conflict):
    message = "The item has changed since you read it. Read it again, then retry."

    def __init__(self, current: InboxItem) -> None:
        super().__init__(details={"currentVersion": current.version, "currentStatus": current.status})


class NotACodeFinding(Conflict):
    message = "Issues can be opened only for code-audit findings. This item has a different source."

    def __init__(self, source: str) -> None:
        super().__init__(details={"reason": "not_a_code_finding", "source": source})


class RepositoryNotLinked(ApiError):
    code = "REPOSITORY_NOT_LINKED"
    message = "The finding's repository isn't connected and linked to a project. Ask the operator to do that."

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


def change_status(item: InboxItem, body: InboxItemUpdate, user_id: str) -> InboxItem:
    """Changes the status and returns the item. Raises StaleVersion, NotFound."""
    try:
        return inbox.change_status(item, body.status, body.version, user_id, body.reason)
    except inbox.StaleVersion as refusal:
        raise StaleVersion(refusal.current) from None
    except inbox.UnknownItem:
        raise NotFound from None


async def open_issue(item: InboxItem, user_id: str) -> InboxItem:
    """Returns the item with its issue, and opens the issue if there isn't one.

    Raises NotACodeFinding, RepositoryNotLinked, CreationPending, CreationRefused, and Forbidden if the user has lost
    the role.
    """
    if item.github_issue is not None:
        return item
    _check_repository(item)
    try:
        attempt, is_new = issue_attempts.begin_attempt(item.item_id, user_id)
    except issue_attempts.IssueExists:
        return inbox.get_item(item.item_id)
    except issue_attempts.RoleLost:
        raise Forbidden from None
    except inbox.UnknownItem:
        raise NotFound from None
    if is_new or attempt.is_overdue:
        try_to_announce(item.item_id)
    settled = await _wait_for_issue(attempt)
    if settled is None:
        raise CreationPending
    return settled


async def _wait_for_issue(attempt: Attempt) -> InboxItem | None:
    """Waits until the item has its issue and returns it, or None if the attempt is still open after the wait.

    Checks only once if the attempt is old or if too many requests are already waiting (`store.waiting`).
    """
    is_old = attempt.requested_at < clock.timestamp(clock.now() - _OLD_ATTEMPT_SECONDS)
    seconds = 0.0 if is_old else settings.issue_wait_seconds
    with waiting.slot(seconds) as may_wait:
        for pause in _pauses(seconds if may_wait else 0):
            await clock.pause(pause)
            settled = _find_settled(attempt)
            if settled is not None:
                return settled
    return None


def _check_repository(item: InboxItem) -> None:
    """Raises NotACodeFinding or RepositoryNotLinked if an issue can't be opened for the item."""
    if item.source != "code-audit":
        raise NotACodeFinding(item.source)
    try:
        repository = repositories.get_repository(item.repository_id or "")
    except repositories.UnknownRepository:
        raise RepositoryNotLinked(item.repository_id) from None
    if not repository.links:
        raise RepositoryNotLinked(item.repository_id)


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


def _find_settled(attempt: Attempt) -> InboxItem | None:
    """Returns the item if it has its issue, or None while the attempt is open.

    Raises CreationRefused, RepositoryNotLinked, and NotFound if the item was deleted.
    """
    standing = issue_attempts.find_standing(attempt.item_id)
    if standing is None:
        raise NotFound
    if standing.item.github_issue is not None:
        return standing.item
    if standing.attempt is not None:
        return None
    reason = standing.refusal.reason if standing.refusal else ""
    if reason in _NO_ACCESS:
        raise RepositoryNotLinked(standing.item.repository_id)
    raise CreationRefused(reason)

"""The rules of `issue_creation`: when to create an issue at the code host, and when only to search for one.

The create request is sent once for each transition of an attempt to `sending`. The outcome is read from the response
or, without one, from the list of issues. The list lags: an issue may be missing from it for ten minutes.
"""

from controlplane.core import clock
from controlplane.core.observability import logger
from controlplane.github import client as code_host
from controlplane.github.client import CodeHost, Issue
from controlplane.github.errors import (
    AccessLost,
    CodeHostError,
    HostUnavailable,
    InvalidName,
    OutcomeUnknown,
    RateLimitedByHost,
    Refused,
    RepositoryGone,
)
from controlplane.queues.worker import Postponed, Rejected
from controlplane.store import issue_attempts, repositories
from controlplane.store.inbox import GithubIssue, InboxItem
from controlplane.store.issue_attempts import UNSETTLED_SECONDS, Attempt, AttemptMoved, IssueExists
from controlplane.store.repositories import RepositoryItem
from issue_creation import text

# Ages at which the list is checked after an unknown outcome. By the last one, the list has caught up. Including the
# delivery that sent the request, these are four of a message's five deliveries.
_LOOKS_AT_SECONDS = (20, 120, UNSETTLED_SECONDS + 1)
_RETRY_SECONDS = 30
# The sweeper ignores the attempt for this long, while the queue redelivers its message.
_LEFT_TO_THE_QUEUE_SECONDS = 600
# Reasons by response status of the create request, for those without an exception class.
_REFUSALS = {410: "issues-disabled", 422: "text-refused"}


def settle_attempt(item_id: str) -> None:
    """Creates the issue of the item's attempt, or finds out whether it was created. Does nothing without an attempt.

    Raises Postponed if the outcome is still unknown, or if the code host is unavailable or limits requests.
    """
    standing = issue_attempts.find_standing(item_id)
    if standing is None or standing.attempt is None:
        return
    attempt = standing.attempt
    try:
        repository = _find_repository(standing.item)
        if attempt.state == "sending":
            waiting = _reconcile(attempt, repository)
            if waiting is None:
                return
            attempt = waiting
        if repository is None:
            issue_attempts.refuse(attempt, "repository-not-connected")
        else:
            _send(standing.item, attempt, repository)
    except AttemptMoved:
        # Another worker took over the attempt, or a user ended it. Either way, there is nothing left to do.
        logger.info("attempt moved on", extra={"itemId": item_id})


def _find_repository(item: InboxItem) -> RepositoryItem | None:
    try:
        return repositories.get_repository(item.repository_id or "")
    except repositories.UnknownRepository:
        return None


def _connect(repository: RepositoryItem) -> CodeHost:
    return code_host.connect(repository.installation_id)


# While an outcome is unknown


def _reconcile(attempt: Attempt, repository: RepositoryItem | None) -> Attempt | None:
    """Returns None if the issue was found and recorded, or the attempt to resend if certainly no issue was created.

    Raises Postponed while the outcome is unknown.
    """
    sent_at = attempt.sent_at or 0
    issue = _find_issue(attempt, repository, sent_at)
    if issue is not None:
        _record(attempt, issue)
        return None
    age_seconds = int(clock.now()) - sent_at
    if age_seconds < UNSETTLED_SECONDS:
        raise Postponed(_seconds_to_next_look(age_seconds), "the outcome is not known yet")
    logger.warning("no issue was made", extra={"itemId": attempt.item_id, "ageSeconds": age_seconds})
    return issue_attempts.want_again(attempt, 0)


def _find_issue(attempt: Attempt, repository: RepositoryItem | None, sent_at: int) -> Issue | None:
    """Returns the attempt's issue, or None if the code host doesn't list it yet. Raises Postponed."""
    if repository is None:
        return None
    try:
        listed = _connect(repository).list_issues_since(repository.owner, repository.name, sent_at)
        return next((issue for issue in listed if text.has_marker(issue.body, attempt.marker)), None)
    except RateLimitedByHost as limit:
        raise Postponed(limit.retry_after_seconds, "the code host limits requests") from limit
    except (RepositoryGone, AccessLost, Refused, InvalidName):
        return None  # the list is inaccessible, so no issue can be recorded; resending will return the reason
    except HostUnavailable as failure:
        raise Postponed(_RETRY_SECONDS, "the code host does not answer") from failure


def _seconds_to_next_look(age_seconds: int) -> int:
    return next(moment for moment in _LOOKS_AT_SECONDS if moment > age_seconds) - age_seconds


# Creating the issue


def _send(item: InboxItem, attempt: Attempt, repository: RepositoryItem) -> None:
    """Sends the create request, once. Raises AttemptMoved, Postponed, Rejected."""
    host = _connect(repository)
    title, body = text.compose(item, attempt.marker)
    sending = issue_attempts.start_sending(attempt)
    try:
        issue = host.create_issue(repository.owner, repository.name, title, body)
    except OutcomeUnknown as failure:
        raise Postponed(_seconds_to_next_look(0), "the outcome is not known yet") from failure
    except (RepositoryGone, InvalidName):
        issue_attempts.refuse(sending, "repository-gone")
    except AccessLost:
        issue_attempts.refuse(sending, "access-lost")
    except Refused as refusal:
        issue_attempts.refuse(sending, _REFUSALS.get(refusal.status, f"status-{refusal.status}"))
    except RateLimitedByHost as limit:
        issue_attempts.want_again(sending, limit.retry_after_seconds + _LEFT_TO_THE_QUEUE_SECONDS)
        raise Postponed(limit.retry_after_seconds, "the code host limits requests") from limit
    except HostUnavailable as failure:
        issue_attempts.want_again(sending, _LEFT_TO_THE_QUEUE_SECONDS)
        raise Postponed(_RETRY_SECONDS, "the code host is not reached") from failure
    except CodeHostError:
        # Our GitHub App isn't configured, so nothing was sent.
        issue_attempts.want_again(sending, _LEFT_TO_THE_QUEUE_SECONDS)
        raise
    else:
        _record(sending, issue)


def _record(attempt: Attempt, issue: Issue) -> None:
    try:
        issue_attempts.complete(attempt.item_id, attempt.marker, GithubIssue(issue.number, issue.url, issue.created_at))
    except IssueExists:
        logger.info("issue recorded already", extra={"itemId": attempt.item_id})
    except AttemptMoved as moved:
        raise Rejected(f"issue {issue.number} was made for an attempt that a person had ended") from moved

"""The rules of `issue_creation`: when to create an issue at the code host, and when only to search for or look up one.

The create request is sent once for each transition of an attempt to `sending`. The outcome is read from the response
or, without one, from the list of issues. The list lags: an issue may be missing from it for ten minutes.
`findings.issue_attempts` describes the life cycle.
"""

from urllib.parse import urlsplit

from controlplane.code_host import repositories
from controlplane.code_host.github import client as code_host
from controlplane.code_host.github import errors
from controlplane.code_host.github.client import CodeHost, Issue
from controlplane.code_host.items import RepositoryItem
from controlplane.code_host.requests import LIMITED, within_limits
from controlplane.findings import issue_attempts
from controlplane.findings.issue_attempts import UNSETTLED_SECONDS, AttemptChanged, AttemptItem, IssueExists
from controlplane.findings.items import GithubIssue, InboxItem
from controlplane.platform.core import clock
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.core.observability import logger
from controlplane.platform.queues.worker import Delayed, LeftToSweep, Postponed, Rejected
from issue_creation import text

# Ages at which the list is checked after an unknown outcome. By the last one, the list has caught up. Including the
# delivery that sent the request, these are four of a message's five deliveries.
_SEARCHES_AT_SECONDS = (20, 120, UNSETTLED_SECONDS + 1)
_RETRY_SECONDS = 30
# The sweeper ignores the attempt for this long, while the queue redelivers its message.
_REDELIVERED_WITHIN_SECONDS = 600
# Reasons by response status of the create request, for those without an exception class.
_REASONS = {410: "issues-disabled", 422: "text-refused"}
# Why an existing issue can't be linked.
_REFUSALS: dict[type[errors.CodeHostError], str] = {
    errors.IssueGone: "issue-not-found",
    errors.RepositoryGone: "repository-gone",
    errors.InvalidName: "repository-gone",
}


def settle_attempt(item_id: InboxItemId) -> None:
    """Creates the issue of the item's attempt, or finds out whether it was created, or links the existing one.

    Does nothing without an attempt. Raises Postponed if the outcome is still unknown or the code host is unavailable,
    LeftToSweep while we have no access to the issues, and Delayed while the code host limits requests.
    """
    progress = issue_attempts.find_progress(item_id)
    if progress is None or progress.attempt is None:
        return
    item, attempt = progress.item, progress.attempt
    repository = repositories.find_repository(item.repository_id) if item.repository_id else None
    try:
        if repository is None:
            _settle(item, attempt, None)
            return
        with within_limits(repository.installation_id):
            _settle(item, attempt, repository)
    except errors.RateLimitedByHost as limit:
        seconds = limit.retry_after_seconds
        issue_attempts.put_off(attempt, seconds + _REDELIVERED_WITHIN_SECONDS)
        raise Delayed(seconds, LIMITED) from limit
    except AttemptChanged:
        # Another worker took over the attempt, or a user ended it. Either way, there is nothing left to do.
        logger.info("attempt changed concurrently", extra={"itemId": item_id})


def _settle(item: InboxItem, attempt: AttemptItem, repository: RepositoryItem | None) -> None:
    """Raises AttemptChanged, Postponed, LeftToSweep, Rejected, and RateLimitedByHost."""
    if attempt.state == "sending":
        issue = _find_issue(attempt, repository)
        if issue is not None:
            _record(attempt, issue, item)
            return
        attempt = _require_retryable(attempt)
    if repository is None:
        issue_attempts.refuse(attempt, "repository-not-connected")
    elif attempt.existing is not None:
        _link_issue(item, attempt, attempt.existing, repository)
    else:
        _create_issue(item, attempt, repository)


# The issue exists


def _link_issue(item: InboxItem, attempt: AttemptItem, number: int, repository: RepositoryItem) -> None:
    """Records the issue, or why it can't be. Raises AttemptChanged, Postponed, Rejected, and RateLimitedByHost."""
    try:
        issue = _connect(repository).get_issue(repository.owner, repository.name, number)
    except errors.HostUnavailable as failure:
        raise Postponed(_RETRY_SECONDS, "the code host does not answer") from failure
    except (errors.IssueGone, errors.RepositoryGone, errors.InvalidName, errors.AccessLost, errors.Refused) as failure:
        issue_attempts.refuse(attempt, _REFUSALS.get(type(failure), "access-lost"))
        return
    # An issue that was transferred is found in its new repository.
    is_here = (
        urlsplit(issue.url).path.lower().endswith(f"/{repository.owner}/{repository.name}/issues/{number}".lower())
    )
    if issue.is_pull_request:
        issue_attempts.refuse(attempt, "is-pull-request")
    elif is_here:
        _record(attempt, issue, item)
    else:
        issue_attempts.refuse(attempt, "issue-not-found")


# The request was sent, and its outcome is unknown


def _find_issue(attempt: AttemptItem, repository: RepositoryItem | None) -> Issue | None:
    """Returns the attempt's issue, or None if the code host doesn't list it yet.

    Raises Postponed, LeftToSweep, and RateLimitedByHost.
    """
    if repository is None:
        return None
    try:
        listed = _connect(repository).list_issues_since(repository.owner, repository.name, attempt.sent_at or 0)
        return next((issue for issue in listed if text.has_marker(issue.body, attempt.marker)), None)
    except (errors.RepositoryGone, errors.AccessLost, errors.Refused, errors.InvalidName) as failure:
        # The issue may exist, so the request isn't repeated: access can be back by then, and would open another one.
        issue_attempts.put_off(attempt, _REDELIVERED_WITHIN_SECONDS)
        raise LeftToSweep("the issues can't be listed") from failure
    except errors.HostUnavailable as failure:
        raise Postponed(_RETRY_SECONDS, "the code host does not answer") from failure


def _require_retryable(attempt: AttemptItem) -> AttemptItem:
    """Returns the attempt as `wanted`, because certainly no issue was created. Raises Postponed until then."""
    age_seconds = int(clock.now()) - (attempt.sent_at or 0)
    if age_seconds < UNSETTLED_SECONDS:
        raise Postponed(_seconds_to_next_search(age_seconds), "the outcome is not known yet")
    logger.warning("no issue was created", extra={"itemId": attempt.item_id, "ageSeconds": age_seconds})
    return issue_attempts.retry_later(attempt, 0)


# The request is sent


def _create_issue(item: InboxItem, attempt: AttemptItem, repository: RepositoryItem) -> None:
    """Sends the create request, once, and stores its outcome.

    Raises AttemptChanged, Postponed, Rejected, and RateLimitedByHost.
    """
    host = _connect(repository)
    title, body = text.compose(item, attempt.marker)
    sending = issue_attempts.start_sending(attempt)
    try:
        issue = host.create_issue(repository.owner, repository.name, title, body)
    except errors.OutcomeUnknown as failure:
        raise Postponed(_seconds_to_next_search(0), "the outcome is not known yet") from failure
    except (errors.RepositoryGone, errors.InvalidName):
        issue_attempts.refuse(sending, "repository-gone")
    except errors.AccessLost:
        issue_attempts.refuse(sending, "access-lost")
    except errors.Refused as failure:
        issue_attempts.refuse(sending, _REASONS.get(failure.status, f"status-{failure.status}"))
    except errors.RateLimitedByHost as limit:
        issue_attempts.retry_later(sending, limit.retry_after_seconds + _REDELIVERED_WITHIN_SECONDS)
        raise
    except errors.HostUnavailable as failure:
        issue_attempts.retry_later(sending, _REDELIVERED_WITHIN_SECONDS)
        raise Postponed(_RETRY_SECONDS, "the code host is not reached") from failure
    except errors.CodeHostError:
        # Our GitHub App isn't configured, so nothing was sent.
        issue_attempts.retry_later(sending, _REDELIVERED_WITHIN_SECONDS)
        raise
    else:
        _record(sending, issue, item)


def _connect(repository: RepositoryItem) -> CodeHost:
    return code_host.connect(repository.installation_id)


def _seconds_to_next_search(age_seconds: int) -> int:
    return next(moment for moment in _SEARCHES_AT_SECONDS if moment > age_seconds) - age_seconds


def _record(attempt: AttemptItem, issue: Issue, item: InboxItem) -> None:
    opened = GithubIssue(issue.number, issue.url, issue.created_at, "open" if issue.is_open else "closed")
    try:
        issue_attempts.complete(attempt.item_id, attempt.marker, opened, item.repository_id)
    except IssueExists:
        logger.info("issue already recorded", extra={"itemId": attempt.item_id})
    except AttemptChanged as failure:
        raise Rejected(f"issue {issue.number} was made for an attempt that a person had ended") from failure

"""The rules of `github_events`: the reaction to each event.

An event says what may have changed. The current state is read from GitHub, so events may be late, repeated, and out
of order, and the last one that is processed leaves the current state.
"""

from collections.abc import Callable

from controlplane.code_host import installations, repositories
from controlplane.code_host.github.errors import AccessLost, InvalidName, Refused, RepositoryGone
from controlplane.code_host.items import RepositoryItem
from controlplane.code_host.requests import retried_later
from controlplane.platform.core import clock
from controlplane.platform.core.ids import RepositoryId
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.queues.messages import HostEvent, HostEventName, ReportPullRequest
from controlplane.platform.queues.worker import Delayed, Postponed, Rejected, is_last_delivery
from github_events import access, issues, pull_requests, pushes, reports

_UNAVAILABLE_SECONDS = 60

_RULES: dict[HostEventName, Callable[[HostEvent], None]] = {
    "installation": lambda event: access.refresh(event, _catch_up),
    "repository": access.refresh,
    "push": pushes.follow,
    "pull_request": pull_requests.follow,
    "check_run": pull_requests.run_again,
    "issues": issues.follow,
}
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
    pushes.scan_newest(repository)
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

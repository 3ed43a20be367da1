"""A person's request for a finding's issue, in the API and on the pages: to open one, or to link one that exists.

    item = await open_issue(item, user_id)          # open one
    item = await open_issue(item, user_id, "#42")   # link one: a number, or the address of the issue's page

The worker `issue_creation` does both. `findings.issue_attempts` describes the life cycle of an attempt.
"""

import re
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from urllib.parse import urlsplit

from awsclient.errors import AwsError
from controlplane.code_host import repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.findings import inbox, issue_attempts
from controlplane.findings.issue_attempts import AttemptItem
from controlplane.findings.items import InboxItem
from controlplane.platform.core import acting, clock
from controlplane.platform.core.errors import ApiError, Conflict, InvalidPayload, known
from controlplane.platform.core.ids import InboxItemId, RepositoryId
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.messages import Unreachable
from controlplane.platform.table import waiting

ISSUE_INVALID = "This isn't an issue of the finding's repository. Send its number or URL."

# Reasons of `issue_creation` for which we no longer have access to the repository.
_NO_ACCESS = {"repository-not-connected", "repository-gone", "access-lost"}
# Those for which an existing issue isn't linked.
_NOT_LINKED = {"issue-not-found", "is-pull-request"}
_NUMBER = re.compile(r"#?([1-9][0-9]{0,9})")
_PAGE = re.compile(r"/([^/]+)/([^/]+)/issues/([1-9][0-9]{0,9})/?")
_LONGEST = 500
# Polls often at first, because GitHub usually responds within a second.
_FIRST_PAUSES_SECONDS = (0.2, 0.3, 0.5)
_PAUSE_SECONDS = 1.0
# If the attempt is older than this, an earlier request has already waited for it, so this one looks once.
_OLD_ATTEMPT_SECONDS = 30


class NotACodeFinding(Conflict):
    message = "Issues can be opened only for code-audit findings. This item has a different source."

    def __init__(self, source: str) -> None:
        super().__init__(details={"reason": "not_a_code_finding", "source": source})


class FindingsLocked(Conflict):
    """The item announces locked findings. It isn't a finding itself."""

    message = "This item announces locked findings. Unlock the scan's report, then open issues for its findings."

    def __init__(self, scan_id: str) -> None:
        super().__init__(details={"reason": "findings_locked", "scanId": scan_id})


class RepositoryNotLinked(ApiError):
    code = "REPOSITORY_NOT_LINKED"
    message = "The finding's repository isn't connected and linked to a project. Ask an admin to do that."

    def __init__(self, repository_id: str | None) -> None:
        super().__init__(details={"repositoryId": repository_id})


class HasAnotherIssue(Conflict):
    message = "This finding has another issue. A finding has one issue, which can't be replaced."

    def __init__(self, number: int) -> None:
        super().__init__(details={"reason": "has_another_issue", "number": number})


class CreationPending(Conflict):
    """The outcome of the attempt to open or link the issue isn't known yet."""

    message = "The issue is being opened. Retry later: a retry never opens a second issue."

    def __init__(self) -> None:
        super().__init__(details={"status": "creation_pending"}, headers={"Retry-After": "10"})


class CreationRefused(Conflict):
    """The code host rejected the issue, for a reason that persists until it is fixed there."""

    message = "The code host rejected the issue. See details.reason, fix it there, then retry."

    def __init__(self, reason: str) -> None:
        super().__init__(details={"status": "creation_refused", "reason": reason.replace("-", "_")})


class LinkRefused(Conflict):
    """The repository has no issue with that number, or it is a pull request."""

    message = "The repository has no such issue. Check the number, and that it isn't a pull request's."

    def __init__(self, reason: str) -> None:
        super().__init__(details={"status": "link_refused", "reason": reason.replace("-", "_")})


async def open_issue(item: InboxItem, user_id: str, existing: int | str | None = None) -> InboxItem:
    """Returns the item with its issue. Opens an issue if the item has none, or links the existing one.

    A dry run returns it as it is. Raises the errors of `request_issue` and `find_issue`.
    """
    attempt = request_issue(item, user_id, existing)
    if acting.is_dry_run():
        return item
    if attempt is None:
        return item if item.github_issue is not None else inbox.get_item(item.item_id)
    is_old = attempt.requested_at < clock.timestamp(clock.now() - _OLD_ATTEMPT_SECONDS)
    wait_seconds = 0.0 if is_old else settings.issue_wait_seconds
    with waiting.slot(wait_seconds) as may_wait:
        for pause_seconds in [0.0] if is_old else _pauses(wait_seconds if may_wait else 0):
            await clock.pause(pause_seconds)
            opened = find_issue(item.item_id, None if existing is None else attempt.existing)
            if opened is not None:
                return opened
    raise CreationPending


def request_issue(item: InboxItem, user_id: str, existing: int | str | None = None) -> AttemptItem | None:
    """Requests an issue for the item, or that an existing one is linked. Returns None if the item already has it.

    existing: the issue's number, or its page's address in the item's repository; None opens an issue. While an
    attempt is pending, the same request returns that one, and sends its message again only if it is overdue.
    Raises InvalidPayload, NotACodeFinding, FindingsLocked, RepositoryNotLinked, HasAnotherIssue, CreationPending
    while another issue is requested, RoleLost, and UnknownItem.
    """
    if item.github_issue is not None and existing is None:
        return None
    repository_id = _require_repository(item)
    number = None if existing is None else _parse_number(existing, lambda: _get_linked(repository_id))
    _require_issue(item, number)
    try:
        attempt, is_new = issue_attempts.begin_attempt(item.item_id, user_id, number, repository_id=repository_id)
    except issue_attempts.RepositoryUnlinked:
        raise RepositoryNotLinked(repository_id) from None
    except issue_attempts.IssueExists:
        _require_issue(inbox.get_item(item.item_id), number)
        return None
    if is_new or attempt.is_overdue:
        try:
            issue_attempts.send_message(item.item_id)
        except (Unreachable, AwsError) as error:
            logger.warning("attempt left to the sweep", extra={"itemId": item.item_id, **describe(error)})
    if number is not None and attempt.existing != number:
        raise CreationPending
    return attempt


def find_issue(item_id: InboxItemId, existing: int | None = None) -> InboxItem | None:
    """Returns the item once it has its issue, or None while an attempt is pending.

    existing: the number of the issue that was to be linked. Raises HasAnotherIssue, CreationRefused, LinkRefused,
    RepositoryNotLinked, and UnknownItem if the item was deleted.
    """
    progress = known(issue_attempts.find_progress(item_id), inbox.UnknownItem)
    if _require_issue(progress.item, existing):
        return progress.item
    if progress.attempt is not None:
        return None
    reason = progress.refusal.reason if progress.refusal else ""
    if reason in _NO_ACCESS:
        raise RepositoryNotLinked(progress.item.repository_id)
    raise (LinkRefused if reason in _NOT_LINKED else CreationRefused)(reason)


def _require_issue(item: InboxItem, number: int | None) -> bool:
    """Returns whether the item has an issue. Raises HasAnotherIssue if it isn't the one with the number."""
    issue = item.github_issue
    if issue is not None and number is not None and issue.number != number:
        raise HasAnotherIssue(issue.number)
    return issue is not None


def _require_repository(item: InboxItem) -> RepositoryId:
    """Returns the ID of the item's repository. Raises NotACodeFinding, FindingsLocked, or RepositoryNotLinked."""
    if item.source != "code-audit":
        raise NotACodeFinding(item.source)
    if item.locked_findings is not None:
        raise FindingsLocked(item.locked_findings.scan_id)
    if item.repository_id is None:
        raise RepositoryNotLinked(None)
    return item.repository_id


def _get_linked(repository_id: RepositoryId) -> RepositoryItem:
    repository = repositories.find_repository(repository_id)
    if repository is None or not repository.links:
        raise RepositoryNotLinked(repository_id)
    return repository


def _parse_number(existing: int | str, get_repository: Callable[[], RepositoryItem]) -> int:
    """Returns the number of the issue. Gets the repository unless the text is a number.

    Raises InvalidPayload if the text isn't an issue in the repository.
    """
    text = str(existing).strip()[:_LONGEST]
    if found := _NUMBER.fullmatch(text):
        return int(found[1])
    repository = get_repository()
    host, path = _host_and_path(text)
    found = _PAGE.fullmatch(path) if host and host == _host_and_path(repository.html_url)[0] else None
    if found and (found[1].lower(), found[2].lower()) == (repository.owner.lower(), repository.name.lower()):
        return int(found[3])
    raise InvalidPayload.at(["existingIssue"], ISSUE_INVALID, "issue_invalid")


def _host_and_path(url: str) -> tuple[str | None, str]:
    """Returns both. The host is None if the text isn't a URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None, ""
    return parts.hostname, parts.path


def _pauses(left: float) -> Iterator[float]:
    """Yields the pauses before each poll, which add up to `left` seconds: none without time, right after the write."""
    pauses = chain(_FIRST_PAUSES_SECONDS, repeat(_PAUSE_SECONDS))
    while left > 0:
        pause = min(next(pauses), left)
        yield pause
        left -= pause

"""Writes about attempts at the issues of findings."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.findings import inbox, issue_attempts
from controlplane.findings.issue_attempts import AttemptChanged, AttemptItem
from controlplane.findings.items import GithubIssue
from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.functional.stale_writes.cases import Act, Make, Refused, check_refused, deletes, happens, sets
from tests.support.calls import before_the_transaction
from tests.support.world import World

ISSUE, OTHER = (GithubIssue(number, f"https://x.example/{number}", "2026-03-04T05:00:00Z") for number in (7, 8))
LATER = 3_600


class Finding:
    """A finding, whose issue an admin requests."""

    def __init__(self, world: World) -> None:
        company = world.company()
        self.admin_id = world.member(company, "admin").user_id
        self.membership = keys.membership(self.admin_id, company.organization_id)
        self.repository = world.connected_repository(company)
        self.item_id = world.finding(company, self.repository).item_id
        self.key = keys.inbox_item(*self.item_id.location)

    def begin(self) -> tuple[AttemptItem, bool]:
        repository_id = self.repository.repository_id
        return issue_attempts.begin_attempt(self.item_id, self.admin_id, repository_id=repository_id)

    def unlink(self) -> None:
        repositories.unlink_project(self.repository.repository_id, self.repository.links[0].project_id)

    def complete(self, marker: str | None = None, issue: GithubIssue = ISSUE) -> None:
        issue_attempts.complete(self.item_id, marker, issue)

    def put_off(self, attempt: AttemptItem) -> bool:
        issue_attempts.put_off(attempt, LATER)
        progress = issue_attempts.find_progress(self.item_id)
        return is_due_later(progress.attempt if progress else None)


def is_due_later(attempt: AttemptItem | None) -> bool:
    return attempt is not None and attempt.due_at > clock.now() + LATER


def _new(
    earlier: Callable[[Finding], Any], error: type[Exception], write: Callable[[Finding], Act] = lambda it: it.begin
) -> Make:
    """Begins an attempt, or another write that needs none."""

    def make(world: World) -> Any:
        finding = Finding(world)
        return write(finding), lambda: earlier(finding), error

    return make


def _read(
    write: Callable[[Finding, AttemptItem], Any],
    earlier: Callable[[Finding, AttemptItem], Any],
    error: type[Exception] = AttemptChanged,
    first: Callable[[AttemptItem], AttemptItem] = lambda attempt: attempt,
) -> Make:
    """Changes an attempt as it was read. first: what was done before."""

    def make(world: World) -> Any:
        finding = Finding(world)
        read = first(finding.begin()[0])
        return lambda: write(finding, read), lambda: earlier(finding, read), error

    return make


def _send(_: Finding, attempt: AttemptItem) -> None:
    issue_attempts.start_sending(attempt)


def _retry(_: Finding, attempt: AttemptItem) -> None:
    issue_attempts.retry_later(attempt, 0)


def _retry_much_later(_: Finding, attempt: AttemptItem) -> None:
    happens(lambda: is_due_later(issue_attempts.retry_later(attempt, LATER)))()


def _put_off(finding: Finding, attempt: AttemptItem) -> None:
    happens(lambda: finding.put_off(attempt))()


def _refuse(_: Finding, attempt: AttemptItem) -> None:
    issue_attempts.refuse(attempt, "withdrawn")


def _complete(finding: Finding, attempt: AttemptItem) -> None:
    finding.complete(attempt.marker)


def _begin_again(finding: Finding, attempt: AttemptItem) -> None:
    _refuse(finding, attempt)
    finding.begin()


def _send_again(_: Finding, attempt: AttemptItem) -> None:
    issue_attempts.start_sending(issue_attempts.retry_later(attempt, 0))


SENT = issue_attempts.start_sending
CASES: dict[str, Make] = {
    "attempt of a former admin": _new(lambda it: sets(it.membership, role="member")(), issue_attempts.RoleLost),
    "attempt in an unlinked repository": _new(Finding.unlink, issue_attempts.RepositoryUnlinked),
    "attempt at a deleted finding": _new(lambda it: deletes(it.key)(), inbox.UnknownItem),
    "second attempt": _new(Finding.begin, Refused, lambda it: happens(lambda: it.begin()[1])),
    "second issue": _new(Finding.complete, issue_attempts.IssueExists, lambda it: lambda: it.complete(issue=OTHER)),
    "former attempt that is sent": _read(_send, _begin_again),
    "attempt that another worker sends": _read(_send, _send),
    "attempt that is retried twice": _read(_retry_much_later, _retry, Refused, SENT),
    "attempt that another worker sends, and one retries": _read(_retry, _send_again, first=SENT),
    "former attempt that is put off": _read(_put_off, _begin_again, Refused),
    "attempt that is sent, and put off": _read(_put_off, _send, Refused),
    "former attempt that is refused": _read(_refuse, _begin_again),
    "attempt that is retried, and refused": _read(_refuse, _retry, first=SENT),
    "attempt that another worker sends, and one refuses": _read(_refuse, _send_again, first=SENT),
    "attempt at a deleted finding that is refused": _read(_refuse, lambda it, _: deletes(it.key)()),
    "former attempt that is completed": _read(_complete, _begin_again),
}


@pytest.mark.parametrize("name", CASES)
def test_an_outdated_write_is_refused_and_changes_nothing(name, world):
    check_refused(CASES[name], world)


def test_a_finding_that_is_deleted_while_its_issue_is_recorded_stays_deleted(world):
    finding = Finding(world)
    attempt, _ = finding.begin()
    with before_the_transaction(table.client, deletes(finding.key)), pytest.raises(AttemptChanged):
        finding.complete(attempt.marker)
    assert table.get(finding.key) is None

"""An item never gets two issues, wherever a process dies, and always gets one eventually."""

import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from controlplane.findings import inbox, issue_attempts
from controlplane.findings.items import InboxItem
from controlplane.platform.core import clock
from controlplane.platform.core.settings import settings
from issue_creation.app import handler
from tests.functional.issue_creation.conftest import DEAD_LETTERS, QUEUE, Opening
from tests.races.faults import Kind
from tests.races.stage import RACE_TIME, Stage, faults, race
from tests.races.threads import run_repeatedly
from tests.races.yields import only_writes
from tests.support.calls import Proceed, intercepted
from tests.support.cleanup import swept
from tests.support.issue_host import HostedIssue, IssueHost
from tests.support.outcomes import Aborted
from tests.support.sqs import FakeSqs, SqsMessage
from tests.support.world import World

LAGS_SECONDS = (0, 30, 400)
# A delivery makes at most five calls: item with attempt, repository, attempt (or list), code host, item with attempt.
# It dies before or after one of them, or not at all.
POINTS = range(11)
_LONGEST_SECONDS = 7_200


type Fresh = Callable[[World], "IssueCreation"]


class Died(Aborted):
    """The worker's process died here."""


class IssueCreation(Opening):
    """Code findings of one organization, and everything that creates issues for them. The test controls the time."""

    def finding(self) -> InboxItem:
        self.item = self.world.finding(self.company, self.repository)
        return self.item

    def want(self, item: InboxItem) -> None:
        """Requests an issue, as the endpoint does before it waits."""
        issue_attempts.begin_attempt(item.item_id, self.company.owner.user_id)
        issue_attempts.send_message(item.item_id)

    def wanted(self) -> tuple[InboxItem, SqsMessage]:
        """Returns a finding whose issue is requested, and the message about it."""
        item = self.finding()
        self.want(item)
        (letter,) = self.due()
        return item, letter

    def due(self) -> list[SqsMessage]:
        return self.sqs.due(QUEUE)

    def deliver(self, letter: SqsMessage) -> None:
        self.sqs.deliver(letter, handler, DEAD_LETTERS)

    def settle(self) -> None:
        """Delivers messages when they are due, with a sweep every minute, until no attempt is open."""
        end = clock.now() + _LONGEST_SECONDS
        while issue_attempts.list_attempts():
            assert clock.now() < end, "an attempt stays open for ever"
            if not self.due():
                self.advance(60)
                swept(issue_attempts.resend_overdue)
            self.work()

    def check_one_issue(self, item: InboxItem) -> None:
        self.settle()
        assert len(self.issues_of(item)) == 1
        assert inbox.get_item(item.item_id).github_issue is not None

    def issues_of(self, item: InboxItem) -> list[HostedIssue]:
        return [issue for issue in self.issues if item.title in issue.title]


@pytest.fixture
def fresh(stage: Stage, host: IssueHost, sqs: FakeSqs, shared_clock: Callable[[float], None]) -> Fresh:
    """Returns a function that starts without messages and issues."""

    def start(world: World) -> IssueCreation:
        sqs.letters.clear()
        host.issues.clear()
        host.requests.clear()
        shared_clock(RACE_TIME)
        company = world.company()
        repository = world.connected_repository(company)
        item = world.finding(company, repository)
        advance: Callable[[float], None] = lambda seconds: shared_clock(clock.now() + seconds)  # noqa: E731
        return IssueCreation(stage.api, company, repository, item, host, sqs, advance, world)

    return start


class Mortal:
    """Counts a delivery's calls to the table and the code host, and kills it at one of them."""

    def __init__(self, client: Any, host: IssueHost) -> None:
        self._client, self._host = client, host

    def deliver(self, creation: IssueCreation, letter: SqsMessage, point: int) -> bool:
        """Returns True if it died: at call `point // 2`, before the call if the point is even, otherwise after it."""
        made = [0]

        def around(proceed: Proceed) -> Any:
            number, made[0] = made[0], made[0] + 1
            if point == 2 * number:
                raise Died
            answer = proceed()
            if point == 2 * number + 1:
                raise Died
            return answer

        self._host.around = lambda operation, proceed: around(proceed)
        try:
            with intercepted(self._client, lambda call, proceed: around(proceed)):
                creation.deliver(letter)
        except Died:
            return True
        finally:
            self._host.around = lambda operation, proceed: proceed()
        return False


@pytest.mark.parametrize("lost", [False, True], ids=["answered", "worked but timed out"])
@pytest.mark.parametrize("lag_seconds", LAGS_SECONDS)
def test_two_crashes_at_any_two_points_leave_exactly_one_issue(stage, fresh, lag_seconds, lost):
    creation = fresh(stage.fresh())
    creation.host.lag_seconds = lag_seconds
    mortal = Mortal(stage.client, creation.host)
    plans = deaths = 0
    for first, second in product(POINTS, POINTS):
        item = creation.finding()
        creation.host.script.clear()
        if lost:
            creation.host.script.append("lost")
        creation.want(item)
        died = 0
        for point in (first, second):
            moment = creation.sqs.next_at(QUEUE)
            if moment is None:
                break
            creation.advance(max(0.0, moment - clock.now()))
            (letter,) = creation.due()
            died += mortal.deliver(creation, letter, point)
        creation.settle()
        found = inbox.get_item(item.item_id).github_issue
        made = creation.issues_of(item)
        assert len(made) == 1, f"{len(made)} issues after deaths at {first} and {second}"
        assert found is not None, f"none recorded after deaths at {first} and {second}"
        assert found.number == made[0].number
        # The remaining messages find their work already done.
        for letter in list(creation.sqs.at(QUEUE)):
            creation.deliver(letter)
        assert creation.sqs.at(QUEUE) == []
        # Dead letters need an operator, so they appear only if a worker died.
        assert creation.sqs.at(DEAD_LETTERS) == [] or died
        creation.sqs.letters.clear()
        plans, deaths = plans + 1, deaths + died
    assert plans == len(POINTS) ** 2
    assert deaths > plans


@race()
def test_of_two_concurrent_deliveries_one_creates_the_issue(world, fresh):
    creation = fresh(world)
    item = creation.finding()
    creation.want(item)
    creation.want(item)
    yield [lambda letter=letter: creation.deliver(letter) for letter in creation.due()]
    creation.check_one_issue(item)


# An editor whose item the issue has changed must reread it first.
@race(ends={(200, "accepted"), (409, "open")})
def test_an_issue_and_a_status_change_are_both_kept(world, fresh):
    creation = fresh(world)
    item, letter = creation.wanted()
    path, body = f"/v1/inbox/{item.item_id}", {"status": "accepted", "version": item.version}
    patch = lambda: creation.api.patch(path, creation.company.owner.token, json_body=body)  # noqa: E731
    _, reply = yield [lambda: creation.deliver(letter), patch]
    current = inbox.get_item(item.item_id)
    assert current.github_issue is not None
    return reply.status, current.status


# If the link wins, both get its issue. If the new issue wins, the link is refused. Some requests only lose time.
LINK_WINS, ISSUE_WINS = (True, 201, 201), (False, 409, 201)


@race(yields_at=only_writes, ends={LINK_WINS, ISSUE_WINS, None})
def test_of_a_link_and_a_new_issue_the_first_wins(world, fresh, monkeypatch):
    creation = fresh(world)
    item = creation.finding()
    creation.exists(42)

    async def pause(_: float) -> None:
        creation.work()

    monkeypatch.setattr(clock, "pause", pause)
    replies = yield [lambda: creation.link(42), creation.post]
    creation.settle()
    issue = inbox.get_item(item.item_id).github_issue
    assert len(creation.issues_of(item)) == creation.host.count("create") == (issue.number != 42)
    for reply in replies:
        assert reply.code == "CONFLICT" if reply.status != 201 else reply.data["githubIssue"]["number"] == issue.number
    end = (issue.number == 42, *(reply.status for reply in replies))
    return end if end in {LINK_WINS, ISSUE_WINS} else None


@faults()
def test_under_every_fault_the_worker_leaves_one_issue_and_a_settled_item(world, fresh):
    creation = fresh(world)
    item, letter = creation.wanted()

    def again() -> None:
        creation.advance(360)
        creation.work()

    yield lambda: creation.deliver(letter), again
    creation.check_one_issue(item)


@faults()
def test_under_every_fault_a_request_for_an_issue_succeeds_and_sends_once(world, fresh, monkeypatch):
    creation = fresh(world)
    item = creation.finding()

    async def pause(seconds: float) -> None:
        creation.advance(seconds)

    monkeypatch.setattr(clock, "pause", pause)
    case = yield creation.post
    assert case.fault.kind is Kind.CRASH or case.first.get().status in {409, 429, 503}
    creation.check_one_issue(item)
    assert creation.post().status == 201


def test_sixteen_concurrent_requests_create_one_issue(stage, fresh, monkeypatch):
    creation = fresh(stage.fresh())
    item = creation.finding()
    at_work, sent = threading.Lock(), threading.Event()
    send_message = creation.sqs.send_message

    def send(**message: Any) -> dict[str, Any]:
        answer = send_message(**message)
        sent.set()
        return answer

    async def pause(seconds: float) -> None:
        # Otherwise, a request may use up its pauses before the one that created the attempt sends the message.
        sent.wait()
        with at_work:  # the in-memory host is shared
            creation.work()

    # A request that finds three random slots for waiting taken doesn't wait: none of these does.
    monkeypatch.setitem(settings.__dict__, "account_concurrency", 1_000_000)
    monkeypatch.setattr(creation.sqs, "send_message", send)
    monkeypatch.setattr(clock, "pause", pause)
    replies = [outcome.get() for outcome in run_repeatedly([creation.post] * 16)]
    assert {reply.status for reply in replies} == {201}
    assert len({reply.data["githubIssue"]["number"] for reply in replies}) == 1
    assert len(creation.issues_of(item)) == creation.host.count("create") == 1

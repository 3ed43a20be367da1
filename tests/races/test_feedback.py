"""One report per day for the same content, and ten new ones per hour, despite races, lost calls, and crashes."""

from collections.abc import Callable
from typing import Any

from controlplane.feedback import store as feedback
from tests.races.faults import check_first
from tests.races.stage import RACE_TIME, Stage, faults, race
from tests.support.api import Reply
from tests.support.world import World

# 2026-03-04T23:59:59.999Z, and a millisecond later.
LAST_OF_DAY = 1_772_668_799.999
FIRST_OF_DAY = 1_772_668_800.0


class Reporter:
    """A user with two tokens who has already sent a number of reports."""

    def __init__(self, world: World, stage: Stage, sent: int = 0) -> None:
        self.stage, self.person = stage, world.person()
        self.tokens = [self.person.token, world.token(self.person.user_id)]
        for number in range(sent):
            assert self.reports(f"before {number}")().status == 201

    def reports(self, message: str, token: int = 0, before: Callable[[], Any] = lambda: None) -> Callable[[], Reply]:
        body = {"category": "bug", "message": message}
        return lambda: (before(), self.stage.api.post("/v1/feedback", self.tokens[token], json_body=body))[1]

    def stored(self) -> tuple[list[str], list[int]]:
        """Returns the reports, and how much of the quota of each hour is used."""
        items = self.stage.check_invariants().items()
        reports = [item["message"] for key, item in items if key.pk.startswith("FEEDBACK#")]
        return reports, sorted(item["taken"] for key, item in items if key.pk.startswith("FEEDBACKQUOTA#"))


@race(ends={(200, 201, 429), (201, 200, 429), (429, 429, 201)})
def test_two_equal_reports_and_another_share_the_last_unit_of_quota(world, stage):
    reporter = Reporter(world, stage, sent=9)
    replies = yield [reporter.reports("same"), reporter.reports("same", 1), reporter.reports("other")]
    assert reporter.stored()[1] == [10]
    same, again, other = replies
    if other.status == 429:
        assert same.data["reference"] == again.data["reference"]
        assert sorted([same.data["alreadySubmitted"], again.data["alreadySubmitted"]]) == [False, True]
    return tuple(reply.status for reply in replies)


@race(ends={201, 503})
def test_a_report_and_a_pause_are_serialized(world, stage):
    reporter = Reporter(world, stage)
    reply, _ = yield [reporter.reports("one"), lambda: feedback.set_intake(paused=True)]
    assert len(reporter.stored()[0]) == (reply.status == 201)
    # After the switch has responded, new reports are rejected, and retries of accepted ones are answered.
    assert reporter.reports("one")().status == (200 if reply.status == 201 else 503)
    return reply.status


# The days have nothing in common, so that there is one order.
@race(least=1)
def test_the_same_report_on_both_sides_of_midnight_is_two_reports(world, stage, thread_clock):
    thread_clock(LAST_OF_DAY)
    reporter = Reporter(world, stage)
    late = reporter.reports("same", 0, lambda: thread_clock(LAST_OF_DAY))
    replies = yield [late, reporter.reports("same", 1, lambda: thread_clock(FIRST_OF_DAY))]
    assert [reply.status for reply in replies] == [201, 201]
    assert [reply.data["reference"][:12] for reply in replies] == ["FDB-20260304", "FDB-20260305"]
    assert reporter.stored()[1] == [1, 1]


@faults()
def test_under_every_fault_a_retried_report_is_accepted_once(world, stage):
    reporter = Reporter(world, stage, sent=9)
    case = yield reporter.reports("one")
    first, second = check_first(case, 201), case.second.get()
    assert second.status in {200, 201}
    if first:
        assert second.data == {**first.data, "alreadySubmitted": True}
    reports, taken = reporter.stored()
    assert (reports.count("one"), taken) == (1, [10])


@faults()
def test_under_every_fault_a_report_retried_after_midnight_is_no_error(world, stage, thread_clock):
    thread_clock(LAST_OF_DAY)
    reporter = Reporter(world, stage)
    again = reporter.reports("one", 0, lambda: thread_clock(FIRST_OF_DAY))
    case = yield reporter.reports("one", 0, lambda: thread_clock(LAST_OF_DAY)), again
    assert case.second.get().status == 201
    assert 1 <= len(reporter.stored()[0]) <= 2
    thread_clock(RACE_TIME)

"""One report per day for the same content, and ten new ones per hour, despite races, lost calls, and crashes."""

from collections.abc import Callable

import pytest

from controlplane.store import feedback
from tests.races.stage import RACE_TIME, Stage
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Crashed, Kind, Trial
from tests.support.invariants import Items
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races

# 2026-03-04T23:59:59.999Z, and a millisecond later.
LAST_OF_DAY = 1_772_668_799.999
FIRST_OF_DAY = 1_772_668_800.0


class Reporter:
    """A user with two tokens who has already sent a number of reports."""

    def __init__(self, world: World, api: DirectApi, sent: int = 0) -> None:
        self.api = api
        self.person = world.person()
        self.tokens = [self.person.token, world.token(self.person.user_id)]
        for number in range(sent):
            assert self.reports(f"before {number}")().status == 201

    def reports(self, message: str, token: int = 0, before: Callable[[], None] = lambda: None) -> Callable[[], Reply]:
        def act() -> Reply:
            before()
            body = {"category": "bug", "message": message}
            return self.api.post("/v1/feedback", self.tokens[token], json_body=body)

        return act


def reports_in(items: Items) -> list[str]:
    return [item["message"] for key, item in items.items() if key.pk.startswith("FEEDBACK#")]


def taken_in(items: Items) -> list[int]:
    return sorted(item["taken"] for key, item in items.items() if key.pk.startswith("FEEDBACKQUOTA#"))


class TestEveryOrder:
    def test_two_equal_reports_and_another_share_the_last_unit_of_quota(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            reporter = Reporter(world, stage.api, sent=9)

            def check(outcomes: list[Outcome]) -> None:
                same, again, other = replies = [outcome.get() for outcome in outcomes]
                items = stage.check_invariants()
                assert taken_in(items) == [10]
                assert [reply.status for reply in replies].count(201) == 1
                if other.status == 201:
                    assert {same.status, again.status} == {429}
                else:
                    assert other.status == 429
                    assert sorted([same.status, again.status]) == [200, 201]
                    assert same.data["reference"] == again.data["reference"]
                    assert sorted([same.data["alreadySubmitted"], again.data["alreadySubmitted"]]) == [False, True]

            acts = [reporter.reports("same"), reporter.reports("same", 1), reporter.reports("other")]
            return Race(acts, check)

        stage.race(scenario)

    def test_a_report_and_a_pause_are_serialized(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            reporter = Reporter(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                status = outcomes[0].get().status
                assert status in {201, 503}
                items = stage.check_invariants()
                assert len(reports_in(items)) == (status == 201)
                # After the switch has responded, new reports are rejected, and retries of accepted ones are answered.
                assert reporter.reports("one")().status == (200 if status == 201 else 503)

            return Race([reporter.reports("one"), lambda: feedback.set_intake(paused=True)], check)

        # The switch may change before or after it is read.
        assert stage.race(scenario) == 2

    def test_the_same_report_on_both_sides_of_midnight_is_two_reports(
        self, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Race:
            thread_clock(LAST_OF_DAY)
            reporter = Reporter(world, stage.api)

            def check(outcomes: list[Outcome]) -> None:
                replies: list[Reply] = [outcome.get() for outcome in outcomes]
                assert [reply.status for reply in replies] == [201, 201]
                days = [reply.data["reference"][:12] for reply in replies]
                assert days == ["FDB-20260304", "FDB-20260305"]
                assert taken_in(stage.check_invariants()) == [1, 1]

            late = reporter.reports("same", 0, lambda: thread_clock(LAST_OF_DAY))
            early = reporter.reports("same", 1, lambda: thread_clock(FIRST_OF_DAY))
            return Race([late, early], check)

        # The days have nothing in common.
        assert stage.race(scenario, least=1) == 1


def test_threads_never_exceed_the_quota_or_store_a_report_twice(stage: Stage) -> None:
    reporter = Reporter(stage.fresh(), stage.api)
    acts = [reporter.reports(f"report {number // 2}", number % 2) for number in range(16)]
    more = [reporter.reports(f"more {number}") for number in range(16)]
    replies: list[Reply] = [outcome.get() for outcome in [*run_repeatedly(acts), *run_repeatedly(more)]]
    # A report with too much contention gets a 429 and isn't stored.
    assert {reply.status for reply in replies} <= {200, 201, 429}
    items = stage.check_invariants()
    assert len(reports_in(items)) == len(set(reports_in(items))) == 10
    assert taken_in(items) == [10]
    assert [reply.status for reply in replies].count(201) == 10


class TestEveryFault:
    def test_under_every_fault_a_retried_report_is_accepted_once(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            reporter = Reporter(world, stage.api, sent=9)

            def check(case: Case) -> None:
                check_first(case, 201)
                second: Reply = case.second.get()
                assert second.status in {200, 201}
                if case.first.error is None and case.first.get().status == 201:
                    assert second.data == {**case.first.get().data, "alreadySubmitted": True}
                items = stage.check_invariants()
                assert reports_in(items).count("one") == 1
                assert taken_in(items) == [10]

            return Trial(reporter.reports("one"), check)

        assert stage.faults(scenario) > 10

    def test_under_every_fault_a_report_retried_after_midnight_is_no_error(
        self, stage: Stage, thread_clock: Callable[[float], None]
    ) -> None:
        def scenario(world: World) -> Trial:
            thread_clock(LAST_OF_DAY)
            reporter = Reporter(world, stage.api)

            def check(case: Case) -> None:
                if case.fault.kind is Kind.CRASH:
                    assert isinstance(case.first.error, Crashed)
                assert case.second.get().status == 201
                assert 1 <= len(reports_in(stage.check_invariants())) <= 2
                thread_clock(RACE_TIME)

            again = reporter.reports("one", 0, lambda: thread_clock(FIRST_OF_DAY))
            return Trial(reporter.reports("one", 0, lambda: thread_clock(LAST_OF_DAY)), check, again)

        assert stage.faults(scenario) > 10

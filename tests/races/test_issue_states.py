"""An item never gets two issues, and its link is right or says that it is unknown, whatever happens in any order.

The machine finds such orders by itself (`make models`). The schedules below are
orders in which a planted bug shows: together, they notice every condition and leg that the store can lose.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from controlplane.findings import issue_attempts
from issue_creation import service
from tests.races.issue_model import EXISTING, FAULTS, LAGS_SECONDS, IssueModel, Step, Violated
from tests.races.stage import Stage
from tests.support.each import each
from tests.support.issue_host import IssueHost
from tests.support.mutants import mutant, planted
from tests.support.sqs import FakeSqs
from tools.mutate.mutants import Mutant, make_mutants

# A schedule is one step: a request, a jump of the clock, or some calls of a worker. A run has 25 of them.
STEPS = 25
COUNT = int(os.environ.get("MODEL_SCHEDULES") or 250)
ROOT = Path(__file__).parents[2]
STORE = "layers/shared/controlplane/findings/issue_attempts.py"

type Open = Callable[[], IssueModel]


@pytest.fixture
def model(stage: Stage, host: IssueHost, sqs: FakeSqs, shared_clock: Callable[[float], None]) -> Iterator[Open]:
    """Returns a function that starts over with another item."""
    world = stage.fresh()
    with ExitStack() as stack:

        def opened() -> IssueModel:
            stack.close()
            return stack.enter_context(IssueModel.opened(stage.client, world, host, sqs, shared_clock))

        yield opened


def run(model: Open, schedule: list[Step]) -> None:
    made = model()
    for step in schedule:
        made.step(*step)
    made.step("settle")


def one(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(name), *arguments)


_ACTS = st.integers(0, 3)
CHOICES = st.one_of(
    one("request", st.integers(0, 1), st.sampled_from([None, None, EXISTING, EXISTING + 1])),
    one("deliver", st.integers(0, 5)),
    one("go", _ACTS, st.integers(1, 6)),
    one("strike", _ACTS, st.sampled_from(FAULTS)),
    one("answer_next", st.sampled_from(["lost", "lost", "unreached", 410, 429, 503])),
    one("fail_next_list", st.sampled_from([403, 404, 503])),
    one("lag", st.sampled_from(LAGS_SECONDS)),
    one("advance", st.sampled_from([1, 40, 61, 300, 601])),
    st.sampled_from([("correct",), ("withdraw",), ("sweep",), ("link_by_hand",)]),
    # Nothing much happens after these.
    one("late", st.sampled_from([("demote", 0), ("demote", 1), ("unlink",), ("remove",), ("expire",)])),
)


def machine(model: Open) -> type[RuleBasedStateMachine]:
    """Returns the state machine that chooses the steps."""

    class IssueMachine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.model = model()

        @rule(step=CHOICES)
        def step(self, step: tuple[Any, ...]) -> None:
            if step[0] != "late":
                self.model.step(*step)
            elif len(self.model.steps) > STEPS // 2:
                self.model.step(*step[1])

        def teardown(self) -> None:
            self.model.step("settle")

    return IssueMachine


@pytest.mark.timeout(600 + 2 * COUNT)  # ends only a hang
def test_no_schedule_leads_to_a_second_issue_or_a_wrong_link(model: Open) -> None:
    """Always tries the same schedules for a seed. A failing run is shrunk, and printed."""
    chosen = settings(
        max_examples=COUNT // STEPS,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=[*HealthCheck],
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
    )
    chosen_by = seed(int(os.environ.get("MODEL_SEED") or 1))
    run_state_machine_as_test(chosen_by(machine(model)), settings=chosen)


BEGUN: list[Step] = [("request", 0, None), ("go", 0, 1)]
LINKING: list[Step] = [("request", 0, EXISTING), ("go", 0, 1), ("deliver",), ("go", 0, 2)]
WITHDRAWN: list[Step] = [("withdraw",), ("go", -1, 1)]
BEGUN_AGAIN: list[Step] = [("request", 1, None), ("go", -1, 1)]
# Claimed, and the worker died before its request. Its issue can't appear anymore.
UNSENT: list[Step] = [*BEGUN, ("deliver",), ("go", 0, 2), ("strike", 0, "crash before"), ("advance", 601)]
# For each mutant of a condition or a leg, a schedule in which it shows. An act's calls: a request writes; a delivery
# reads, searches if a request was sent, claims, asks the code host, reads the item, and writes; a withdrawal writes
# what it has read.
SCHEDULES: dict[str, list[Step]] = {
    "begin_attempt without the leg 'caller'": [("request", 0, None), ("demote", 0), ("go", 0, 1)],
    "begin_attempt without the leg 'repository'": [("request", 0, None), ("unlink",), ("go", 0, 1)],
    "begin_attempt without the condition attribute_exists(#links[0])": [
        ("request", 0, None), ("unlink",), ("go", 0, 1),
    ],
    "begin_attempt without the leg 'item'": [("request", 0, None), ("link_by_hand",), ("go", 0, 1)],
    "begin_attempt without the condition attribute_exists(pk)": [("request", 0, None), ("remove",), ("go", 0, 1)],
    "begin_attempt without the condition attribute_not_exists(#githubIssue)": [
        ("request", 0, None), ("link_by_hand",), ("go", 0, 1),
    ],
    "begin_attempt without the leg 'attempt'": [*BEGUN, *BEGUN_AGAIN],
    "begin_attempt without the condition attribute_not_exists(pk)": [*BEGUN, *BEGUN_AGAIN],
    "start_sending without the condition #marker = :marker": [
        *BEGUN, ("deliver",), ("go", 0, 1), *WITHDRAWN, *BEGUN_AGAIN, ("go", 0, 1),
    ],
    "start_sending without the condition #state = :wanted": [
        *BEGUN, ("deliver",), ("deliver",), ("go", 0, 1), ("go", 1, 1), ("go", 0, 1), ("go", 1, 1),
    ],
    "retry_later without the condition #state = :sending": [
        *UNSENT, ("deliver",), ("go", 0, 2), ("advance", 1), ("deliver",), ("go", 1, 3), ("go", 0, 1),
    ],
    "retry_later without the condition #claim = :claim": [
        *UNSENT, ("deliver",), ("go", 0, 2), ("deliver",), ("go", 1, 4), ("go", 0, 1),
    ],
    "put_off without the condition #marker = :marker": [
        *BEGUN, ("answer_next", 429), ("deliver",), ("go", 0, 4), *WITHDRAWN, *BEGUN_AGAIN, ("go", 0, 1),
    ],
    "put_off without the condition #state = :state": [
        *BEGUN, ("answer_next", 429), ("deliver",), ("deliver",), ("go", 0, 1), ("go", 1, 1), ("go", 0, 3),
        ("go", 1, 1), ("go", 0, 1),
    ],
    "refuse without the leg 'attempt'": [*BEGUN, *WITHDRAWN],
    "refuse without the leg 'item'": [*BEGUN, *WITHDRAWN],
    "refuse without the condition #marker = :marker": [
        *BEGUN, ("withdraw",), *WITHDRAWN, *BEGUN_AGAIN, ("go", 0, 1),
    ],
    "refuse without the condition #state = :state": [*UNSENT, ("withdraw",), ("deliver",), ("go", 1, 3), ("go", 0, 1)],
    "refuse without the condition (attribute_not_exists(#claim) OR #claim = :claim)": [
        *UNSENT, ("withdraw",), ("deliver",), ("go", 1, 4), ("go", 0, 1),
    ],
    "refuse without the condition attribute_exists(pk)": [*BEGUN, ("withdraw",), ("expire",), ("go", 0, 1)],
    "complete without the condition attribute_not_exists(pk) OR #marker = :marker": [
        *LINKING, *WITHDRAWN, *BEGUN_AGAIN, ("go", 0, 2),
    ],
    "complete without the condition #version = :read": [*LINKING, ("go", 0, 1), ("remove",), ("go", 0, 1)],
    "complete without the condition attribute_not_exists(#githubIssue)": [
        *LINKING, *WITHDRAWN, *BEGUN_AGAIN, ("deliver",), ("go", 1, 6), ("go", 0, 2),
    ],
}  # fmt: skip
# What concerns an issue that is open already.
_OPENED = {"_opened", "record_state"}
# Legs that aren't written in place.
LEGS_OF_COMPLETE = {
    "item": ('{"item": recorded, ', "{"),
    "attempt": ('"attempt": ends, ', ""),
    "issue": ("**_opened(repository_id, issue.number, item_id)", ""),
}


@cache
def planted_bugs() -> dict[str, Mutant]:
    """Returns every mutant of the attempts without a condition or a leg, by name."""
    found = [bug for bug in make_mutants(ROOT, STORE) if "without the " in bug.change]
    return {f"{bug.scope} {bug.change}": bug for bug in found if bug.scope not in _OPENED}


def test_every_condition_and_leg_has_a_schedule() -> None:
    assert planted_bugs().keys() == {*SCHEDULES}


@each("name", SCHEDULES)
def test_a_schedule_shows_that_a_condition_or_a_leg_is_gone(name: str, model: Open) -> None:
    run(model, SCHEDULES[name])
    with planted(planted_bugs()[name]), pytest.raises(Violated):
        run(model, SCHEDULES[name])


@each("leg", LEGS_OF_COMPLETE)
def test_a_completion_without_a_leg_shows(leg: str, model: Open) -> None:
    schedule: list[Step] = [*BEGUN, ("deliver",), ("go", 0, 4)]
    run(model, schedule)
    with mutant(issue_attempts.complete, *LEGS_OF_COMPLETE[leg]), pytest.raises(Violated):
        run(model, schedule)


@each("status", [403, 404])
def test_an_issue_that_could_not_be_looked_for_is_not_opened_again(status: int, model: Open) -> None:
    lost: list[Step] = [*BEGUN, ("answer_next", "lost"), ("deliver",), ("go", 0, 3), ("advance", 601)]
    schedule = [*lost, ("fail_next_list", status), ("deliver",), ("go", 0, 9)]
    run(model, schedule)
    sent_again = mutant(
        service._find_issue, 'raise LeftToSweep("the issues can\'t be listed") from failure', "return None"
    )
    with sent_again, pytest.raises(Violated, match="may have an issue"):
        run(model, schedule)

"""The API does what a simple model says, in any order of requests, faults, retries, and jumps of the clock.

The operations come from docs/openapi.json. `make models` tries more, and others.
"""

from collections.abc import Callable
from dataclasses import replace
from types import FunctionType
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from controlplane.core import clock, deadline
from controlplane.core.plans import PLANS
from controlplane.http import rejections
from controlplane.http.access import Requires
from controlplane.store import api_keys, idempotency, projects, refusals, webhooks
from tests.races.api_model import MODELED, OPERATIONS, ApiModel
from tests.races.api_operations import NOT_MODELED
from tests.races.stage import RACE_TIME, Stage
from tests.support.each import each
from tests.support.machines import explore, in_time
from tests.support.mutants import mutant

pytestmark = pytest.mark.races

type Open = Callable[[], ApiModel]


@pytest.fixture
def model(stage: Stage, shared_clock: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> Open:
    """Returns a function that starts over. Limits are low, so that schedules reach them."""
    monkeypatch.setattr(deadline, "source", lambda: 0.0)
    monkeypatch.setattr(api_keys, "API_KEYS_PER_ORGANIZATION", 3)
    monkeypatch.setattr(webhooks, "WEBHOOKS_PER_ORGANIZATION", 2)
    for plan in ("pro", "free"):
        monkeypatch.setitem(PLANS, plan, replace(PLANS[plan], projects=3))

    def start() -> ApiModel:
        rejections.reset_malformed()
        refusals.forget_full()
        return ApiModel(stage, shared_clock, RACE_TIME)

    return start


def machine(model: Open) -> type[RuleBasedStateMachine]:
    class ApiMachine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.model = model()

        @rule(
            name=st.sampled_from(sorted(MODELED)),
            caller=st.integers(0, 20),
            org=st.integers(0, 4),
            pick=st.integers(0, 11),
            fault=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 30)),
        )
        def call(self, name: str, caller: int, org: int, pick: int, fault: tuple[int, int] | None) -> None:
            self.model.call(name, caller, org, pick, fault)

        @rule(
            name=st.sampled_from(sorted(name for name in MODELED if OPERATIONS[name]["method"] != "GET")),
            org=st.integers(0, 4),
            pick=st.integers(0, 11),
            fault=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 30)),
        )
        def write(self, name: str, org: int, pick: int, fault: tuple[int, int] | None) -> None:
            self.model.call(name, 0, org, pick, fault)

        @rule(seconds=st.sampled_from([1, 61, 3_601, 90_000]))
        def advance(self, seconds: int) -> None:
            self.model.set_clock(clock.now() + seconds)

        def teardown(self) -> None:
            self.model.check_everything()

    return ApiMachine


def test_every_operation_has_a_model_or_a_reason() -> None:
    assert not MODELED.keys() & NOT_MODELED
    assert MODELED.keys() | NOT_MODELED == OPERATIONS.keys()


@in_time
def test_every_schedule_ends_as_the_model_says(model: Open) -> None:
    explore(machine(model))


OWNER, MEMBER, READER = 0, 12, 9
# In the first organization: what is changed in the product, and requests (operation, caller, organization, number of
# the item, fault) whose responses the model then contradicts.
PLANTED: dict[str, tuple[FunctionType, str, str, list[tuple[Any, ...]]]] = {
    "keys without a limit": (
        api_keys.create_key,
        "#keys < :cap",
        "(#keys < :cap OR attribute_exists(pk))",
        [("createApiKey", OWNER, 0, 1, None)] * 4,
    ),
    "projects without a limit": (
        projects._increment_count,
        "#projects < :{plan}_limit",
        "(#projects < :{plan}_limit OR attribute_exists(pk))",
        [("createProject", OWNER, 0, 1, None)] * 4,
    ),
    "projects that are counted twice": (
        projects._increment_count,
        '{"one": 1}',
        '{"one": 2}',
        [("createProject", OWNER, 0, 1, None)],
    ),
    "a role that isn't checked": (
        Requires.resolve,
        "RANK[caller.membership.role] < RANK[self.role]",
        "False",
        [("listWebhookEndpoints", MEMBER, 0, 1, None)],
    ),
    "a scope that isn't checked": (
        Requires.check,
        "self.scope is not None and",
        "False and",
        [("createProject", READER, 0, 1, None)],
    ),
    "a repetition that takes effect again": (
        idempotency.begin_attempt,
        'unused = "attribute_not_exists(pk)"',
        'unused = "attribute_exists(pk) OR attribute_not_exists(pk)"',
        [("createProject", OWNER, 0, 1, None)],
    ),
}


@each("bug", PLANTED)
def test_a_planted_bug_contradicts_the_model(bug: str, model: Open) -> None:
    function, text, replacement, requests = PLANTED[bug]

    def run() -> None:
        made = model()
        for request in requests:
            made.call(*request)
        made.check_everything()

    run()
    with mutant(function, text, replacement), pytest.raises(AssertionError):
        run()

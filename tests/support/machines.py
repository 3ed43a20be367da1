"""Runs state machines of Hypothesis: as many schedules as the command asks for, always the same for a seed.

A schedule is one step: a request, a jump of the clock, or some calls of a worker. A run of a machine has 25 of them.
A failing run is shrunk, and printed as the calls of the machine's rules.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

STEPS = 25
SCHEDULES = int(os.environ.get("MODEL_SCHEDULES") or 500)
SEED = int(os.environ.get("MODEL_SEED") or 1)
# Ends only a hang.
in_time = pytest.mark.timeout(600 + 2 * SCHEDULES)


def explore(machine: type[RuleBasedStateMachine]) -> None:
    chosen = settings(
        max_examples=SCHEDULES // STEPS,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=[*HealthCheck],
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(seed(SEED)(machine), settings=chosen)

"""A transaction is applied once and reports its own result, whatever happens to its attempts."""

import pytest

from controlplane.store.keys import Key
from controlplane.store.table import Put, Throttled, table
from tests.races.stage import Stage
from tests.support.faults import Case, Crashed, Kind, Trial
from tests.support.table import PREPARED
from tests.support.world import World

pytestmark = pytest.mark.races

# Only its key is like an organization's.
KEY = Key("ORG#org_0123456789abcdef", "META")


def put_once() -> None:
    table.transact({"item": Put(KEY._asdict(), "attribute_not_exists(pk)")}, PREPARED)


def test_no_attempt_is_refused_by_an_earlier_one(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        def check(case: Case) -> None:
            if case.fault.kind is Kind.CRASH:
                assert isinstance(case.first.error, Crashed)
            else:
                case.first.get()
            assert table.get(KEY) is not None

        return Trial(put_once, check)

    assert stage.faults(scenario, invariants=False) > 10


def test_endless_contention_is_given_up_within_a_second(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        def check(case: Case) -> None:
            if case.fault.kind in {Kind.CONFLICT, Kind.THROTTLED}:
                assert isinstance(case.first.error, Throttled)
                assert sum(case.paused_seconds) < 1
                case.second.get()

        return Trial(put_once, check)

    stage.faults(scenario, invariants=False, kinds=frozenset({Kind.CONFLICT, Kind.THROTTLED}), every_time=True)

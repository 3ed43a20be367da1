"""The setting of race tests: the product on a table of the engine, which is new for every run.

A race test is a generator. It prepares its world, yields the acts, is sent their outcomes, and checks those.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from uuid import uuid4

from controlplane.platform.core import clock
from controlplane.platform.table.table import table
from tests.races import starts
from tests.races.faults import Trial, explore_faults
from tests.races.schedules import Race, beyond_the_token, explore
from tests.support import invariants
from tests.support.asgi import DirectApi
from tests.support.calls import Call
from tests.support.invariants import Items
from tests.support.operations import operations
from tests.support.outcomes import Outcome
from tests.support.table import create_table
from tests.support.world import World

type Check = Callable[..., Any]

# 2026-03-04T05:06:07Z: the time of every race, unless an act has a clock of its own.
RACE_TIME = 1_772_600_767.0


@contextmanager
def clock_advanced(milliseconds: int) -> Iterator[None]:
    """Moves the clock while an item is created, to determine the order of lists."""
    with mock.patch.object(clock, "source", return_value=RACE_TIME + milliseconds / 1000):
        yield


class Stage:
    """`client` is the product's client; `api` calls the product's apps. `ran`: the race whose check runs."""

    ran: Race

    def __init__(self, client: Any) -> None:
        operations()  # imports the functions in this thread, which then owns their handlers
        self.client = client
        self.api = DirectApi()
        self._made: list[str] = []

    def fresh(self) -> World:
        """Connects the product to an empty table, at the start of every run of a scenario."""
        table.name = starts.begin(self._new_table)
        return World()

    def _new_table(self) -> str:
        self.close()
        name = f"races-{uuid4().hex}"
        create_table(self.client, name)
        self._made.append(name)
        return name

    def check_invariants(self) -> Items:
        """Reads the whole table and checks all invariants. Returns the items."""
        items = invariants.read_items(self.client, table.name)
        invariants.check_all(items)
        return items

    def came_first(self, act: int) -> bool:
        """Returns True if this act's last transaction preceded the other act's last one, or the other made none."""
        committed = [number for number, call in self.ran.steps if call.operation == "TransactWriteItems"]
        return (bool(committed) and committed[-1] != act) or set(committed) == {act}

    def close(self) -> None:
        while self._made:
            self.client.delete_table(TableName=self._made.pop())


def race(*refusals: type[Exception], ends: set[Any] | None = None, **options: Any) -> Callable[[Check], Check]:
    """Returns a decorator that makes a test of a generator, which is run once for each order of the acts it yields.

    It is sent a list of what the acts returned, or of their errors if these are among the refusals. Any other error
    fails the test. ends: all that the runs have to return, together. options: of `explore`.
    """

    def decorate(function: Check) -> Check:
        def test(stage: Stage, arrange: Callable[[World], Any]) -> None:
            seen = set()

            def scenario() -> Race:
                run = arrange(stage.fresh())

                def check(outcomes: list[Outcome]) -> None:
                    sent = [it.error if isinstance(it.error, refusals) else it.get() for it in outcomes]
                    seen.add(_finish(stage, run, sent))

                stage.ran = Race(next(run), check)
                return stage.ran

            explore(stage.client, scenario, **options)
            assert ends in (None, seen), f"the runs ended in {seen}"

        return _as_test(function, test)

    return decorate


def faults(
    least: int = 10, breaks: Callable[[Call], bool] = beyond_the_token, *, invariants: bool = True, **options: Any
) -> Callable[[Check], Check]:
    """Returns a decorator that makes a test of a generator, which is run once for each fault of each call of an act.

    It yields the act, and after a comma what the client sends next unless it is the same, and is sent the case.
    least: that there are more runs than this. breaks: selects the calls, by default not those about the caller's token,
    which every request makes. invariants: whether all of them are checked after each run. options: of `explore_faults`.
    """

    def decorate(function: Check) -> Check:
        def test(stage: Stage, arrange: Callable[[World], Any]) -> None:
            def scenario() -> Trial:
                run = arrange(stage.fresh())
                acts = next(run)
                act, again = acts if isinstance(acts, tuple) else (acts, None)
                return Trial(act, lambda case: _finish(stage, run, case, invariants=invariants), again)

            assert explore_faults(stage.client, scenario, breaks=breaks, **options) > least

        return _as_test(function, test)

    return decorate


def _finish(stage: Stage, run: Any, sent: Any, *, invariants: bool = True) -> Any:
    """Sends it to the generator, which ends then, and returns what it returns."""
    try:
        run.send(sent)
    except StopIteration as end:
        if invariants:
            stage.check_invariants()
        return end.value
    raise AssertionError("it yields more than once")


def _as_test(function: Check, test: Callable[[Stage, Callable[[World], Any]], None]) -> Check:
    """Returns the test with the fixtures of the function, and those that it needs."""
    names = inspect.signature(function).parameters

    @functools.wraps(function)
    def run(*, stage: Stage, **fixtures: Any) -> None:
        own = fixtures | ({"stage": stage} if "stage" in names else {})
        test(stage, lambda world: function(world, **own))

    given = {"stage", *names} - {"world"}
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in sorted(given)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run

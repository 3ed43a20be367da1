"""Runs concurrent callables in every interleaving of their DynamoDB calls that can make a difference.

Each thread stops before each call, and the scheduler lets exactly one of them continue to its next call. So a run is
deterministic on any engine, and its order of calls is its name. A failing run prints its name; set
`REPLAY_SCHEDULE=<name>` before the test command to repeat only that order. `orders.py` chooses the orders.
"""

import os
import random
import secrets
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tests.races.footprints import Footprint
from tests.races.orders import NotRepeatable, Orders, Repeated
from tests.races.starts import Start
from tests.support.calls import Call, Proceed, intercepted, when_touching
from tests.support.drawn import below_the_product, determined
from tests.support.executors import in_order
from tests.support.outcomes import Aborted, Outcome

# Only ends a run: on a busy machine, an act may wait that long for the processor.
_STUCK_SECONDS = 120
_OUTSIDE = Footprint(writes=frozenset({("outside the table", "")}))
# The act that the calling thread runs.
current: ContextVar["Actor | None"] = ContextVar("actor", default=None)


@dataclass(frozen=True)
class Race:
    """One fresh start: the acts that run concurrently, and the checks after all of them have ended.

    `steps` are the calls in the order in which they were made, each with the number of its act. The run fills it.
    """

    acts: Sequence[Callable[[], Any]]
    check: Callable[[list[Outcome]], None]
    steps: list[tuple[int, Call]] = field(default_factory=list)


class NoRace(Exception):
    """All orders of the calls are equivalent, so the test checks nothing about concurrency."""


class Stuck(Exception):
    """An act neither made a call nor ended: it waits for something from another act, such as a lock."""


class _Abandoned(Aborted):
    """Ends the acts of an aborted run."""


class Actor:
    """One act in its own thread. Each `step` moves it from one call to the next. `drawn`: the source of its ids."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act
        self.drawn: random.Random | None = None
        self.pending: Call | None = None
        self.outcome: Outcome | None = None
        self._abandoned = False
        self._released = False
        self._touched = Footprint()
        self._changed = threading.Condition()

    def start(self) -> None:
        """Runs up to the first call."""
        threading.Thread(target=self._run, daemon=True).start()
        self._settle()

    def step(self) -> Footprint:
        """Makes the pending call and runs up to the next one, or to the end. Returns what the calls touched."""
        self._touched = Footprint()
        with self._changed:
            self.pending, self._released = None, True
            self._changed.notify_all()
        self._settle()
        return self._touched

    def abandon(self) -> None:
        """Ends the act, unless it has ended, and waits for it."""
        with self._changed:
            self._abandoned = self._released = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.outcome, timeout=_STUCK_SECONDS)

    def around(self, call: Call, proceed: Proceed) -> Any:
        with self._changed:
            self.pending = call
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._released)
            self._released = self._abandoned
            if self._abandoned:
                raise _Abandoned
        return proceed()

    def touch(self, footprint: Footprint) -> None:
        """Adds to what the current step touches, unless the act has to end."""
        if self._abandoned:
            raise _Abandoned
        self._touched |= footprint

    def _run(self) -> None:
        current.set(self)
        when_touching.set(lambda: self.touch(_OUTSIDE))
        outcome = Outcome.of(self.act)
        with self._changed:
            self.outcome = outcome
            self._changed.notify_all()

    def _settle(self) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self.pending or self.outcome, timeout=_STUCK_SECONDS):
                raise Stuck


def every_call(call: Call) -> bool:
    return True


def beyond_the_token(call: Call) -> bool:
    """Excludes what each request reads and counts for its caller: the token, the rate limit, refusals, and a slot."""
    key = call.parameters.get("Key")
    return not (key and key["pk"]["S"].startswith(("TH#", "RATE#", "REFUSALS#", "WAITSLOT#")))


def explore(
    client: Any, scenario: Callable[[], Race], *, least: int = 2, yields_at: Callable[[Call], bool] = beyond_the_token
) -> int:
    """Runs the scenario once for each order of its acts' calls that isn't equivalent to another one.

    Returns their number. Raises NoRace if it is below `least`.

    `scenario` starts with fresh data in the table, without traces of earlier runs. `yields_at` excludes calls, which
    then run together with the preceding call: if there are too many orders, or for what an order must not depend on.
    """
    start, orders, seed = Start(client, scenario), Orders(), secrets.randbits(64)
    replay = os.environ.get("REPLAY_SCHEDULE")
    if replay is not None:
        with start.own_run():
            _run(client, start(), _Replay(replay), yields_at, seed)
        return 1
    number, goes_on = 0, True
    while goes_on:
        with start.own_run():
            number += _run(client, start(), orders, yields_at, seed)
        goes_on = orders.end()
    if number < least:
        raise NoRace
    return number


class _Replay:
    """The order that a name gives."""

    def __init__(self, name: str) -> None:
        self._rest = iter(map(int, name))

    def choose(self, enabled: list[int]) -> int | None:
        if not enabled:
            return None
        index = next(self._rest, enabled[0])
        if index not in enabled:
            raise NotRepeatable(f"the schedule names act {index}, and only {enabled} can go on")
        return index

    def stepped(self, act: int, footprint: Footprint) -> None:
        pass


def _run(client: Any, race: Race, orders: Orders | _Replay, yields_at: Callable[[Call], bool], seed: int) -> bool:
    """Returns whether the run came to its end, or else was given up because it would repeat an order.

    seed: of the ids and secrets of each act, so that they are the same in each order.
    """
    actors = [Actor(act) for act in race.acts]
    for number, actor in enumerate(actors):
        actor.drawn = random.Random(f"{seed} {number}")

    def around(call: Call, proceed: Proceed) -> Any:
        actor = current.get()
        if actor is None:
            raise RuntimeError(f"{call} came from a thread that no act owns: the schedule cannot order it")

        def make() -> Any:
            actor.touch(Footprint.of(call))
            with below_the_product():
                return proceed()

        return actor.around(call, make) if yields_at(call) else make()

    try:
        with intercepted(client, around), in_order(), determined(_drawn_by_the_current_act):
            try:
                _take_turns(actors, race.steps, orders)
            except Repeated:
                return False
            finally:
                for actor in actors:
                    actor.abandon()
        race.check([actor.outcome for actor in actors if actor.outcome is not None])
    except BaseException as error:
        error.add_note(
            f"Repeat with REPLAY_SCHEDULE={''.join(str(index) for index, _ in race.steps)}\n"
            + "\n".join(f"  {index}: {call}" for index, call in race.steps)
        )
        raise
    return True


def _drawn_by_the_current_act() -> random.Random | None:
    actor = current.get()
    return None if actor is None else actor.drawn


def _take_turns(actors: list[Actor], steps: list[tuple[int, Call]], orders: Orders | _Replay) -> None:
    for actor in actors:
        actor.start()
    while True:
        index = orders.choose([number for number, actor in enumerate(actors) if actor.outcome is None])
        if index is None:
            return
        pending = actors[index].pending
        assert pending is not None
        steps.append((index, pending))
        orders.stepped(index, actors[index].step())

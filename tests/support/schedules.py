"""Runs concurrent callables in every possible interleaving of their DynamoDB calls.

Each thread stops before each call, and the scheduler lets exactly one of them continue to its next call. So a run is
deterministic on any engine, and its order of calls is its name. A failing run prints its name; set
`REPLAY_SCHEDULE=<name>` before the test command to repeat only that order.
"""

import os
import random
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tests.support.calls import Call, Proceed, intercepted
from tests.support.executors import in_order
from tests.support.outcomes import Aborted, Outcome
from tests.support.starts import Start

# Only ends a run: on a busy machine, an act may wait that long for the processor.
_STUCK_SECONDS = 120
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


@dataclass(frozen=True)
class Explored:
    """The number of different orders that ran, and whether these are all (for a replay: all that were requested)."""

    schedules: int
    exhaustive: bool


class NotRepeatable(Exception):
    """The same order of calls led to different calls than before, so the orders can't be enumerated.

    The calls depend on something other than the table: a cache, the wall clock, a random number. Pin it in the test.
    """


class Stuck(Exception):
    """An act neither made a call nor ended: it waits for something from another act, such as a lock."""


class _Abandoned(Aborted):
    """Ends the acts of an aborted run."""


class Actor:
    """One act in its own thread. Each `step` moves it from one call to the next."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act
        self.pending: Call | None = None
        self.outcome: Outcome | None = None
        self._abandoned = False
        self._released = False
        self._changed = threading.Condition()

    def start(self) -> None:
        """Runs up to the first call."""
        threading.Thread(target=self._run, daemon=True).start()
        self._settle()

    def step(self) -> None:
        """Makes the pending call and runs up to the next one, or to the end."""
        with self._changed:
            self.pending, self._released = None, True
            self._changed.notify_all()
        self._settle()

    def abandon(self) -> None:
        with self._changed:
            self._abandoned = self._released = True
            self._changed.notify_all()

    def around(self, call: Call, proceed: Proceed) -> Any:
        with self._changed:
            self.pending = call
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._released)
            self._released = self._abandoned
            if self._abandoned:
                raise _Abandoned
        return proceed()

    def _run(self) -> None:
        current.set(self)
        outcome = Outcome.of(self.act)
        with self._changed:
            self.outcome = outcome
            self._changed.notify_all()

    def _settle(self) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self.pending or self.outcome, timeout=_STUCK_SECONDS):
                raise Stuck


@dataclass
class _Node:
    """A choice of the scheduler: the acts that could continue, and the node that follows each explored choice."""

    enabled: list[int] = field(default_factory=list)
    behind: dict[int, "_Node"] = field(default_factory=dict)
    exhausted: bool = False

    def open_choices(self) -> list[int]:
        return [index for index in self.enabled if index not in self.behind or not self.behind[index].exhausted]


def explore(
    client: Any,
    scenario: Callable[[], Race],
    *,
    limit: int | None = None,
    seed: int = 0,
    yields_at: Callable[[Call], bool] = lambda call: True,
) -> Explored:
    """Runs the scenario once for each order of its acts' calls, or for `limit` different ones drawn with `seed`.

    `scenario` starts with fresh data in the table, without traces of earlier runs. `yields_at` excludes calls that
    can't matter, such as counting the use of each act's own token. They run together with the preceding call.
    """
    start = Start(client, scenario)
    replay = os.environ.get("REPLAY_SCHEDULE")
    if replay is not None:
        with start.own_run():
            _run(client, start(), _replayer([int(index) for index in replay]), yields_at)
        return Explored(1, exhaustive=True)
    draw = random.Random(seed)
    root = _Node()
    schedules = 0
    while not root.exhausted and (limit is None or schedules < limit):
        path: list[_Node] = [root]

        def choose(enabled: list[int], path: list[_Node] = path) -> int:
            node = path[-1]
            if node.enabled and node.enabled != enabled:
                raise NotRepeatable(f"then {node.enabled} could go on, now {enabled}")
            node.enabled = enabled
            index = draw.choice(node.open_choices())
            path.append(node.behind.setdefault(index, _Node()))
            return index

        with start.own_run():
            _run(client, start(), choose, yields_at)
        schedules += 1
        if path[-1].enabled:
            raise NotRepeatable("all acts ended where one went on before")
        for node in reversed(path):
            node.exhausted = not node.open_choices()
    return Explored(schedules, exhaustive=root.exhausted)


def _replayer(order: list[int]) -> Callable[[list[int]], int]:
    rest = iter(order)

    def choose(enabled: list[int]) -> int:
        index = next(rest, enabled[0])
        if index not in enabled:
            raise NotRepeatable(f"the schedule names act {index}, and only {enabled} can go on")
        return index

    return choose


def _run(client: Any, race: Race, choose: Callable[[list[int]], int], yields_at: Callable[[Call], bool]) -> None:
    actors = [Actor(act) for act in race.acts]

    def around(call: Call, proceed: Proceed) -> Any:
        actor = current.get()
        if actor is None:
            raise RuntimeError(f"{call} came from a thread that no act owns: the schedule cannot order it")
        return actor.around(call, proceed) if yields_at(call) else proceed()

    try:
        with intercepted(client, around), in_order():
            for actor in actors:
                actor.start()
            while enabled := [index for index, actor in enumerate(actors) if actor.outcome is None]:
                index = choose(enabled)
                pending = actors[index].pending
                assert pending is not None
                race.steps.append((index, pending))
                actors[index].step()
        race.check([actor.outcome for actor in actors if actor.outcome is not None])
    except BaseException as error:
        for actor in actors:
            actor.abandon()
        error.add_note(
            f"Repeat with REPLAY_SCHEDULE={''.join(str(index) for index, _ in race.steps)}\n"
            + "\n".join(f"  {index}: {call}" for index, call in race.steps)
        )
        raise

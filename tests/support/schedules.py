"""Runs callables that race through every order in which their DynamoDB calls can interleave.

Before each call a thread stops, and the scheduler lets exactly one of them go on to its next call: a run is exact on
any engine, and the order it took is its name. A run that fails says that name; `REPLAY_SCHEDULE=<name>` in front of
the test's command repeats this one order alone.
"""

import os
import random
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tests.support.calls import Call, Proceed, intercepted
from tests.support.outcomes import Ended, Outcome

_STUCK_SECONDS = 20
_current: ContextVar["_Actor | None"] = ContextVar("actor", default=None)


@dataclass(frozen=True)
class Race:
    """One fresh start: what runs at the same time, and what must hold when all of it has ended.

    `steps` are the calls in the order in which they were made, each with the number of its act; the run fills it.
    """

    acts: Sequence[Callable[[], Any]]
    check: Callable[[list[Outcome]], None]
    steps: list[tuple[int, Call]] = field(default_factory=list)


@dataclass(frozen=True)
class Explored:
    """How many different orders ran, and whether these are all (of a replay: all that was asked for)."""

    schedules: int
    exhaustive: bool


class NotRepeatable(Exception):
    """The same order of calls led to other calls than before, so the orders cannot be counted out.

    Something besides the table decides what is called: a cache, the wall clock, a random number. Pin it in the test.
    """


class Stuck(Exception):
    """An act neither made a call nor ended: it waits for something that only another act can give, such as a lock."""


class _Abandoned(Ended):
    """Ends the acts of a run that was given up."""


class _Actor:
    """One act in a thread of its own. It moves only between `step`s, from one call to the next."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act
        self.pending: Call | None = None
        self.outcome: Outcome | None = None
        self._abandoned = False
        self._released = False
        self._changed = threading.Condition()
        self._one_call = threading.Lock()  # an act that calls from several threads at once makes its calls in turn

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
        with self._one_call:
            with self._changed:
                self.pending = call
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._released)
                self._released = self._abandoned
                if self._abandoned:
                    raise _Abandoned
            return proceed()

    def _run(self) -> None:
        _current.set(self)
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
    """A point where the scheduler chose: who could go on, and what lies behind each choice taken so far."""

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
    """Runs the scenario once in each order of its acts' calls, or in `limit` different ones drawn by `seed`.

    `scenario` makes a fresh start in the table, without a trace of the runs before. `yields_at` leaves out calls that
    cannot matter (they go along with what stands before them), such as the count of each act's own token.
    """
    replay = os.environ.get("REPLAY_SCHEDULE")
    if replay is not None:
        _run(client, scenario(), _replayer([int(index) for index in replay]), yields_at)
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

        _run(client, scenario(), choose, yields_at)
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
    actors = [_Actor(act) for act in race.acts]

    def around(call: Call, proceed: Proceed) -> Any:
        actor = _current.get()
        if actor is None:
            raise RuntimeError(f"{call} came from a thread that no act owns: the schedule cannot order it")
        return actor.around(call, proceed) if yields_at(call) else proceed()

    try:
        with intercepted(client, around):
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

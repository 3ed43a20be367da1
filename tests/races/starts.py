"""Repeats the start of a run without the engine, because thousands of runs prepare the same data.

A scenario prepares a new table and returns the acts that run on it. The first time, its calls are recorded, and then
the items of the table. After that, the scenario's code runs with the same ids and secrets as the first time, its calls
get the recorded answers, and the table gets the recorded items. If the code makes other calls than the first time, it
runs again, and so does every later run, on a new table.
"""

import hashlib
import json
import pickle
import random
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, NamedTuple
from unittest import mock

from controlplane.platform.table import refusals
from tests.support import lagging, world
from tests.support.calls import Call, Proceed, intercepted
from tests.support.drawn import below_the_product, determined
from tests.support.executors import in_order
from tests.support.outcomes import Aborted, Outcome
from tests.support.table import Items, restore_items, stored_items

# World's numbers in a start, which are unused in the rest of a run.
_FIRST_NUMBER = 1_000_000
_TOKEN_LENGTH = 36

_running: list["Start[Any]"] = []


class _Different(Aborted):
    """The scenario made other calls than the first time."""


class _Made(NamedTuple):
    """A call of the first time, and its error or its answer, pickled so that it stays the same if it is changed."""

    call: Call
    error: BaseException | None
    answer: bytes


class Start[T]:
    """Calls a scenario at the start of each run, and repeats its first call.

    client: the client of the scenario's calls, and of the table.
    """

    def __init__(self, client: Any, scenario: Callable[[], T]) -> None:
        self._client = client
        self._scenario = scenario
        self._seed = secrets.randbits(64)
        self._name = ""
        self._made: list[_Made] = []
        self._items: Items = {}
        self._repeats = True
        # Of the current run: the calls that it has to repeat, and those that it has made.
        self._patches = ExitStack()
        self._left: dict[str, deque[_Made]] | None = None

    def __call__(self) -> T:
        """Returns what the scenario returns. Its data is in the table."""
        try:
            return self._prepare()
        except _Different:
            self._repeats = False
            return self._prepare()

    def _prepare(self) -> T:
        _running.append(self)
        try:
            with in_order(), ExitStack() as self._patches:
                prepared = self._scenario()
        finally:
            _running.remove(self)
        if not (self._repeats and self._name):
            return prepared
        if self._left is None:
            self._items = stored_items(self._client, self._name)
        elif any(self._left.values()):
            raise _Different
        else:
            restore_items(self._client, self._name, self._items)
        return prepared

    @contextmanager
    def own_run(self) -> Iterator[None]:
        """While open, the engine doesn't take a run's transaction for a retry of one with the same token in another."""
        run, inner = secrets.token_hex(16), self._client.call

        def outer(operation: str, parameters: dict[str, Any]) -> Any:
            if token := parameters.get("ClientRequestToken"):
                own = hashlib.sha256(f"{run}{token}".encode()).hexdigest()[:_TOKEN_LENGTH]
                parameters = {**parameters, "ClientRequestToken": own}
            return inner(operation, parameters)

        with mock.patch.object(self._client, "call", outer):
            yield

    def begin(self, new_table: Callable[[], str]) -> str:
        """Returns the name of the table that the scenario prepares. The scenario's calls follow."""
        drawn = random.Random(self._seed)
        self._patches.enter_context(determined(lambda: drawn))
        self._patches.enter_context(mock.patch.object(world, "_NUMBERS", count(_FIRST_NUMBER)))
        self._repeats &= not lagging.is_lagging()
        if not self._repeats:
            return new_table()
        if self._name:
            around, self._left = self._repeat, {}
            for made in self._made:
                self._left.setdefault(_key(made.call), deque()).append(made)
        else:
            around, self._name = self._record, new_table()
        # What the product remembers of the run before, whose table and callers had the same names.
        refusals._full.clear()
        self._patches.enter_context(intercepted(self._client, around))
        return self._name

    def _record(self, call: Call, proceed: Proceed) -> Any:
        with below_the_product():
            outcome = Outcome.of(proceed)
        self._made.append(_Made(call, outcome.error, pickle.dumps(outcome.value)))
        return outcome.get()

    def _repeat(self, call: Call, proceed: Proceed) -> Any:
        waiting = (self._left or {}).get(_key(call))
        if not waiting:
            raise _Different
        made = waiting.popleft()
        if made.error is not None:
            raise made.error.with_traceback(None)
        return pickle.loads(made.answer)


def begin(new_table: Callable[[], str]) -> str:
    """Returns the name of an empty table, or of the one that the current start records or repeats."""
    return _running[-1].begin(new_table) if _running else new_table()


def _key(call: Call) -> str:
    return f"{call.operation} {json.dumps(call.parameters)}"

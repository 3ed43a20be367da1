"""Injects every fault that AWS can cause into every DynamoDB call of a callable, one at a time.

Each run starts with fresh data, breaks one call, runs the callable again as a client would after an error, and then
runs the test's checks. No local engine produces conflicts, throttles, or lost responses by itself. A failing run prints
its name; set `REPLAY_FAULT=<name>` before the test command to repeat only that run.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple
from unittest import mock

from botocore.exceptions import ConnectionClosedError

from awsclient.client import OwnClient
from awsclient.errors import NoAnswer, ServiceError
from tests.races.starts import Start
from tests.support.api import Reply
from tests.support.calls import Call, Proceed, intercepted
from tests.support.executors import in_order
from tests.support.outcomes import Aborted, Outcome

_READS = {"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"}
_SINGLE_WRITES = {"PutItem", "UpdateItem", "DeleteItem"}
_TRANSACTIONS = {"TransactWriteItems", "TransactGetItems"}


class Crashed(Aborted):
    """The process died here. None of its later calls reach the table."""


class Kind(StrEnum):
    """The kinds of faults that a test may judge differently."""

    NONE = "no fault"
    CRASH = "crash"
    # The response was lost, and the client's retries are exhausted.
    LOST = "lost"
    # The response was lost, and the client retries the request.
    LOST_ON_THE_WIRE = "lost on the wire"
    # The response was lost although the write was applied, and the retry gets a conflict.
    LOST_THEN_CONFLICT = "lost, then conflict"
    CONFLICT = "conflict"
    THROTTLED = "throttled"
    SERVER_ERROR = "server error"


# The product hides these faults: it retries, and the client doesn't notice.
HIDDEN = {Kind.NONE, Kind.CONFLICT, Kind.LOST_ON_THE_WIRE, Kind.LOST_THEN_CONFLICT}

type Strike = Callable[[Any, Call, Proceed], Any]


class Fault(NamedTuple):
    """A strike replaces a call: it may apply it (`proceed`), and raises the error for the product to handle.

    The first strike replaces the call to break, the following ones replace its retries.
    """

    kind: Kind
    name: str
    strikes: tuple[Strike, ...] = ()


@dataclass(frozen=True)
class Case:
    """One run: the broken call, the fault, and the outcomes of the first attempt and of the client's retry.

    `paused_seconds` are the pauses that the client and the product requested in the first attempt, without waiting.
    """

    fault: Fault
    position: int
    calls: list[Call]
    paused_seconds: list[float]
    first: Outcome
    second: Outcome


def check_first(case: Case, good: int) -> Reply | None:
    """Checks the first attempt's reply. Returns it if it is a success, whose status is `good`, or None if not.

    A contended or lost write is retried, and its response is the usual one. A throttle may also lead to a 429, and
    exhausted SDK retries of a read or a single write to a 503. A 409 is always wrong.
    """
    if case.fault.kind is Kind.CRASH:
        assert isinstance(case.first.error, Crashed)
        return None
    reply: Reply = case.first.get()
    if reply.status == good:
        return reply
    allowed = set[int]()
    if case.fault.kind is Kind.THROTTLED:
        allowed.add(429)
    elif case.fault.kind not in HIDDEN and case.calls[case.position].operation != "TransactWriteItems":
        allowed.add(503)
    assert reply.status in allowed, reply.text
    return None


@dataclass(frozen=True)
class Trial:
    """One fresh start: what runs, what the client sends next (by default the same), and the checks afterward."""

    act: Callable[[], Any]
    check: Callable[[Case], None]
    again: Callable[[], Any] | None = None


def explore_faults(
    client: Any,
    scenario: Callable[[], Trial],
    *,
    kinds: frozenset[Kind] = frozenset(Kind),
    every_time: bool = False,
    breaks: Callable[[Call], bool] = lambda _: True,
) -> int:
    """Runs the scenario without a fault, then once for each fault in each of its calls. Returns the number of runs.

    `every_time` repeats the fault in all later calls of the same operation, until the client's retry.
    `breaks` excludes calls that aren't worth a run of their own.
    """
    start = Start(client, scenario)
    replay = os.environ.get("REPLAY_FAULT")
    with start.own_run():
        calls = _run(client, start(), Fault(Kind.NONE, "no fault"), 0, every_time=False)
    runs = 1
    for position, call in enumerate(calls):
        for fault in faults_of(call) if breaks(call) else ():
            if fault.kind in kinds and replay in (None, _name(position, fault)):
                with start.own_run():
                    _run(client, start(), fault, position, every_time=every_time)
                runs += 1
    return runs


def faults_of(call: Call) -> Iterator[Fault]:
    """Yields every fault that AWS can cause in this call."""
    server_error = _refusal("InternalServerError", status=500)
    yield Fault(Kind.CRASH, "crash before", (_crash,))
    yield Fault(Kind.LOST, "request lost", (_lose,))
    yield Fault(Kind.SERVER_ERROR, "server error, not applied", (server_error,))
    yield Fault(Kind.THROTTLED, "throttled", (_refusal("ProvisionedThroughputExceededException"),))
    if call.operation not in _READS:
        yield Fault(Kind.CRASH, "crash after", (_applied(_crash),))
        yield Fault(Kind.LOST, "response lost", (_applied(_lose),))
        yield Fault(Kind.LOST_ON_THE_WIRE, "response lost on the wire", (_response_lost_on_the_wire,))
        yield Fault(Kind.SERVER_ERROR, "server error, applied", (_applied(server_error),))
    if call.operation in _SINGLE_WRITES:
        yield Fault(Kind.CONFLICT, "conflict", (_refusal("TransactionConflictException"),))
    if call.operation in _TRANSACTIONS:
        yield Fault(Kind.THROTTLED, "throttled on leg 0", (_cancellation("ThrottlingError", 0),))
        for leg in range(len(call.parameters["TransactItems"])):
            yield Fault(Kind.CONFLICT, f"conflict on leg {leg}", (_cancellation("TransactionConflict", leg),))
    if call.operation == "TransactWriteItems":
        conflict, at_retry = (_cancellation("TransactionConflict", 0, retries=retries) for retries in (0, 1))
        yield Fault(Kind.LOST_THEN_CONFLICT, "response lost, then conflict", (_applied(_lose), conflict))
        yield Fault(Kind.LOST_THEN_CONFLICT, "response lost, then conflict at the SDK's retry", (_applied(at_retry),))


def _name(position: int, fault: Fault) -> str:
    return f"{position}: {fault.name}"


def _crash(client: Any, call: Call, proceed: Proceed) -> Any:
    raise Crashed


def _lose(client: Any, call: Call, proceed: Proceed) -> Any:
    raise NoAnswer("lost")


def _applied(strike: Strike) -> Strike:
    """Returns the strike after the call, whose result or error is discarded."""

    def after(client: Any, call: Call, proceed: Proceed) -> Any:
        with suppress(ServiceError):
            proceed()
        return strike(client, call, proceed)

    return after


def _response_lost_on_the_wire(client: Any, call: Call, proceed: Proceed) -> Any:
    own = isinstance(client, OwnClient)
    transport, name = (client, "_exchange") if own else (client._client._endpoint.http_session, "send")
    send = getattr(transport, name)
    lost: list[Any] = []

    def send_and_lose_first(request: Any) -> Any:
        response = send(request)
        if not lost:
            lost.append(response)
            raise NoAnswer("lost") if own else ConnectionClosedError(endpoint_url=request.url)
        return response

    with mock.patch.object(transport, name, send_and_lose_first):
        answer = proceed()
    assert lost, "the request did not go through the client's transport"
    return answer


def _refusal(code: str, *, status: int = 400) -> Strike:
    def strike(client: Any, call: Call, proceed: Proceed) -> Any:
        raise _error(call, code, status=status)

    return strike


def _cancellation(reason: str, leg: int, *, retries: int = 0) -> Strike:
    """Returns a strike that cancels the transaction for this reason on this leg, after that many retries."""

    def strike(client: Any, call: Call, proceed: Proceed) -> Any:
        legs = range(len(call.parameters["TransactItems"]))
        raise _error(
            call,
            "TransactionCanceledException",
            retries=retries,
            CancellationReasons=[{"Code": reason, "Message": reason} if leg == at else {"Code": "None"} for at in legs],
        )

    return strike


def _error(call: Call, code: str, *, status: int = 400, retries: int = 0, **members: Any) -> Exception:
    """Returns the exception that the client raises for this response."""
    return ServiceError(call.operation, code, code, status=status, fields=members, retries=retries)


@dataclass
class _Strikes:
    """Counts the calls of the first attempt, and breaks the one at `position`."""

    client: Any
    fault: Fault
    position: int
    every_time: bool
    calls: list[Call] = field(default_factory=list)
    crashed: bool = False

    def around(self, call: Call, proceed: Proceed) -> Any:
        if self.crashed:
            raise Crashed
        self.calls.append(call)
        strike = self._strike(call)
        if strike is None:
            return proceed()
        try:
            return strike(self.client, call, proceed)
        except Crashed:
            self.crashed = True
            raise

    def check_reached(self, first: Outcome) -> None:
        if len(self.calls) <= self.position:
            raise LookupError("the call to break was not made this time") from first.error

    def _strike(self, call: Call) -> Strike | None:
        after = len(self.calls) - 1 - self.position
        if after < 0 or call.operation != self.calls[self.position].operation:
            return None
        strikes = self.fault.strikes[:1] * (after + 1) if self.every_time else self.fault.strikes
        return strikes[after] if after < len(strikes) else None


def _run(client: Any, trial: Trial, fault: Fault, position: int, *, every_time: bool) -> list[Call]:
    strikes, paused = _Strikes(client, fault, position, every_time), list[float]()
    try:
        with intercepted(client, strikes.around), in_order(), mock.patch.object(time, "sleep", paused.append):
            first = Outcome.of(trial.act)
        if strikes.crashed:
            first = Outcome(error=Crashed())
        strikes.check_reached(first)
        second = Outcome.of(trial.again or trial.act)
        trial.check(Case(fault, position, strikes.calls, paused, first, second))
    except BaseException as error:
        error.add_note(
            f"Repeat with REPLAY_FAULT='{_name(position, fault)}'\n"
            + "\n".join(f"  {at}: {call}" for at, call in enumerate(strikes.calls))
        )
        raise
    return strikes.calls

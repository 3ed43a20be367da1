"""Runs trials, each in a process of its own, some at once. Nothing is written to the product's files.

A child is forked from a process that has already imported what it needs, so that a trial takes little longer than its
tests. Processes that it has started end with it.
"""

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from scripts.mutate.mutants import Mutant

# A mutant may never end. Its tests get this many times what they took, and the time to import the product.
_PATIENCE = 10
_IMPORT_SECONDS = 60


@dataclass(frozen=True)
class Trial:
    """One run of some tests. mutant: None runs the product as it is. seconds: how long the tests usually take."""

    mutant: Mutant | None
    tests: Sequence[str]
    seconds: float


class Verdict(NamedTuple):
    """failed: the first test that failed, or why none ended; None if all passed. ran: how many tests ran."""

    failed: str | None
    ran: int


type Judge = Callable[[Trial], Verdict]


@dataclass(eq=False)
class _Child:
    trial: Trial
    pid: int
    answer: int
    ends: float


def run_trials(
    trials: Iterable[Trial], judge: Judge, *, at_once: int, is_over: Callable[[], bool]
) -> Iterator[tuple[Trial, Verdict]]:
    """Calls `judge` with each trial in a child, and yields the verdicts as they come. Starts none once `is_over()`."""
    children: list[_Child] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number, trial in enumerate(trials):
                if is_over():
                    break
                children.append(_start(trial, judge, Path(folder, str(number))))
                while len(children) >= at_once:
                    yield _next(children)
            while children:
                yield _next(children)
        finally:
            for child in children:
                _end(child)


def in_child(act: Callable[[], Any]) -> tuple[Any, str]:
    """Runs `act` in a child. Returns its result as JSON values, or None if it didn't return, and its output."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output")
        pid, answer = _fork(act, output)
        with os.fdopen(answer) as pipe:
            told = pipe.read()
        os.waitpid(pid, 0)
        return json.loads(told) if told else None, output.read_text(errors="replace")


def _start(trial: Trial, judge: Judge, output: Path) -> _Child:
    pid, answer = _fork(lambda: judge(trial), output)
    return _Child(trial, pid, answer, time.monotonic() + _IMPORT_SECONDS + _PATIENCE * trial.seconds)


def _fork(act: Callable[[], Any], output: Path) -> tuple[int, int]:
    """Starts a child. Returns its id, and a pipe from which its answer can be read as JSON."""
    answer, told = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(told)
        return pid, answer
    # The child. It never returns into the parent's code.
    try:
        os.setsid()
        shown = os.open(output, os.O_CREAT | os.O_WRONLY)
        os.dup2(shown, 1)
        os.dup2(shown, 2)
        answered = json.dumps(act())
        with os.fdopen(told, "w") as pipe:
            pipe.write(answered)
    except BaseException:  # noqa: BLE001  # the parent says that there was no answer
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _next(children: list[_Child]) -> tuple[Trial, Verdict]:
    """Waits until a child ends, or its time is over."""
    while True:
        for child in children:
            has_ended = os.waitpid(child.pid, os.WNOHANG)[0] != 0
            if has_ended or time.monotonic() > child.ends:
                children.remove(child)
                return child.trial, _end(child, has_ended=has_ended)
        time.sleep(0.005)


def _end(child: _Child, *, has_ended: bool = False) -> Verdict:
    with suppress(ProcessLookupError):  # else it has left processes, such as an engine
        os.killpg(child.pid, signal.SIGKILL)
    if not has_ended:
        os.waitpid(child.pid, 0)
    with os.fdopen(child.answer) as pipe:
        told = pipe.read()
    if not told:
        return Verdict("the process ended" if has_ended else "no end in time", 0)
    return Verdict(*json.loads(told))

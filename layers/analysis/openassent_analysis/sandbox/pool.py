"""The sandbox of one scan: spreads the files over child processes, and returns the outcomes in order.

Each child is confined on its own, shares nothing with the other, and is replaced if it is killed.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import select
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Final, Self

from openassent_analysis.files import Skipped
from openassent_analysis.limits import Limits
from openassent_analysis.report import Answer, Report, Request
from openassent_analysis.sandbox.child import Configuration
from openassent_analysis.sandbox.process import WALL, Bounds, Child, Ended, SandboxUnavailable, Task

_logger = logging.getLogger(__name__)
# Without it, Python writes the warnings of a program that configures no logging to stderr.
_logger.addHandler(logging.NullHandler())
_ENTRY: Final = "openassent_analysis.sandbox.child:start_analysis"
# Packages that the child imports, except for the standard library.
_PACKAGES: Final = ("openassent_analysis", "ast_grep_py", "yaml")
# Files sent ahead of a child's answers: enough that it never waits, and few enough to hold in memory.
_AHEAD_FILES: Final = 16
_AHEAD_BYTES: Final = 1024 * 1024
MAX_CHILDREN: Final = 2
# Lambda's memory for one vCPU. It is also enough for a child at its limit, and half of this process.
_MEGABYTES_PER_CORE: Final = 1_769
# How often the time limits are checked, at least.
_TURN_SECONDS: Final = 1.0
_PR_SET_DUMPABLE: Final = 4


class Sandbox:
    """A context manager that owns the children. One starts on entry, and `examine` waits until it is ready.

    Another one starts if there is a core for it, and more files than are sent ahead to those that run. workers: the
    maximum number of children. By default two, as on Lambda.
    """

    def __init__(
        self, limits: Limits, bounds: Bounds | None = None, entry: str = _ENTRY, workers: int = MAX_CHILDREN
    ) -> None:
        self._limits = limits
        self._bounds = bounds or Bounds()
        self._entry = entry
        self._most = max(1, min(workers, cores()))
        self._children: list[Child] = []
        _hide_this_process()

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        while self._children:
            self._children.pop().end()

    def examine(self, requests: Iterator[Request], deadline: float) -> Iterator[Answer]:
        """Yields each file with its report or the reason why it was skipped. Raises SandboxUnavailable.

        Sends a few files ahead, so that no process waits for another. If a child is killed, only its file in progress
        is skipped: a new child gets the others again. deadline: of the whole scan (time.monotonic()).
        """
        tasks: deque[Task] = deque()
        try:
            while True:
                self._send_ahead(tasks, requests)
                if not tasks:
                    return
                outcome = self._wait_for(tasks[0], deadline)
                if outcome is None:
                    break
                yield tasks.popleft().request, outcome
        finally:
            self._end_busy()
        for task in chain(tasks, map(Task, requests)):
            yield task.request, task.outcome or Skipped("out of time")

    def _send_ahead(self, tasks: deque[Task], requests: Iterator[Request]) -> None:
        while len(tasks) < _AHEAD_FILES * self._most and (child := self._next_child()):
            request = next(requests, None)
            if request is None:
                return
            tasks.append(Task(request))
            child.send(tasks[-1])

    def _next_child(self) -> Child | None:
        """Returns the child with the least to do, or None if all have enough. Starts another one in that case."""
        ready = [child for child in self._children if child.ready] or self._children[:1] or [self._start()]
        child = min(ready, key=lambda it: (it.pending_bytes, len(it.tasks)))
        if len(child.tasks) < _AHEAD_FILES and child.pending_bytes < _AHEAD_BYTES:
            return child
        if len(self._children) < self._most:
            self._start()
        return None

    def _wait_for(self, task: Task, deadline: float) -> Report | Skipped | None:
        """Returns the outcome of a file that is next in its child, or None if the deadline passes first."""
        since = time.monotonic()
        while task.outcome is None:
            now = time.monotonic()
            if now > deadline:
                return None
            child = next(it for it in self._children if it.tasks and it.tasks[0] is task)
            since = since if child.ready else now
            expires = since + self._bounds.wall_seconds
            if now > expires:
                child.end()
                self._replace(child, WALL)
            else:
                self._advance(min(deadline - now, expires - now, _TURN_SECONDS))
        return task.outcome

    def _advance(self, seconds: float) -> None:
        """Waits until one of the children can be read from or written to, and lets all of them continue."""
        poll = select.poll()
        for child in self._children:
            child.register(poll)
        events = dict(poll.poll(max(0.0, seconds) * 1_000))
        for child in list(self._children):
            try:
                child.advance(events)
            except Ended as ended:
                self._replace(child, ended.reason)

    def _replace(self, child: Child, reason: str) -> None:
        """Skips the file in progress of a child that has ended. A new child gets its other files."""
        # Never logs the path or anything that the child wrote.
        _logger.warning("analysis process ended: %s (exit status %s)", reason, child.process.returncode)
        self._children.remove(child)
        if child.tasks:
            child.settle(Skipped(reason))
        if child.tasks:
            successor = self._start()
            for task in child.tasks:
                successor.send(task)

    def _end_busy(self) -> None:
        """Ends children that would still answer for files that are no longer wanted."""
        for child in [child for child in self._children if child.tasks]:
            child.end()
            self._children.remove(child)

    def _start(self) -> Child:
        configuration: Configuration = {
            "import_path": _import_path(self._entry),
            "entry": self._entry,
            "limits": asdict(self._limits),
            "cpu_seconds": math.ceil(self._bounds.start_seconds),
            "memory_bytes": self._bounds.memory_bytes,
        }
        self._children.append(Child(configuration, self._bounds))
        return self._children[-1]


def cores() -> int:
    """Returns the number of cores that this process may use. On Lambda, they come with the memory."""
    memory = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
    if memory:
        return max(1, int(memory) // _MEGABYTES_PER_CORE)
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _import_path(entry: str) -> list[str]:
    """Returns the folders of the child's packages, without importing them."""
    folders = []
    for package in (*_PACKAGES, entry.partition(".")[0]):
        spec = None if sys.modules.get(package, sys) is None else find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"{package} is not installed", name=package)
        folders.append(str(Path(next(iter(spec.submodule_search_locations))).parent))
    return list(dict.fromkeys(folders))


def _hide_this_process() -> None:
    """Hides this process's memory and environment, which hold credentials, from the user's other processes.

    See prctl(2). Raises SandboxUnavailable.
    """
    if sys.platform == "linux":
        if ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            raise SandboxUnavailable("this process could not be hidden from others")
    else:
        _logger.warning("Without Linux, the analysis runs in a process of its own, but with access to this machine.")

"""The parent's side of one sandboxed child process: starts it, sends it files, reads its answers, and ends it.

The child is never trusted. Its output is bounded and only ever parsed as a report; its wall time, CPU time, and memory
are limited from outside, by the kernel and by this process's own clock.
"""

from __future__ import annotations

import json
import math
import os
import resource
import select
import signal
import struct
import subprocess  # nosec B404
import sys
import sysconfig
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from openassent_analysis.files import Skipped
from openassent_analysis.report import InvalidReport, Report, Request, read_report
from openassent_analysis.sandbox import child
from openassent_analysis.sandbox.child import Configuration

_ANSWER: Final = struct.Struct(">I")
_REQUEST: Final = struct.Struct(">III")
_PIECE: Final = 64 * 1024

CPU, WALL, MEMORY = "took too much CPU time", "took too long", "needed too much memory"
CRASHED, FAILED = "crashed the analysis", "failed"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits for one file, beyond which the process is killed. An ordinary file takes milliseconds and 20 MB."""

    cpu_seconds: int = 8
    # More than the CPU time, because other processes may be using the CPU.
    wall_seconds: float = 20.0
    # Address space of the whole process. Syntax trees of the largest file take a quarter of it.
    memory_bytes: int = 1024**3
    answer_bytes: int = 1024**2
    start_seconds: float = 30.0


class SandboxUnavailable(Exception):
    """The sandbox can't be started, so nothing may be analyzed. The message says why."""


class Ended(Exception):
    """The child has exited and was reaped. `reason` is why the file in progress is skipped."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(eq=False, slots=True)
class Task:
    """A file to analyze, and its outcome once there is one."""

    request: Request
    outcome: Report | Skipped | None = None


class Child:
    """One child process. It gets nothing until it is ready, so it holds no file before its sandbox is closed."""

    def __init__(self, configuration: Configuration, bounds: Bounds) -> None:
        self._bounds = bounds
        self._max_snippet_length = configuration["limits"]["max_snippet_length"]
        self.ready = False
        self._started = time.monotonic()
        self._cpu_limit = 0
        # Files without an answer, the one in progress first.
        self.tasks: deque[Task] = deque()
        self.pending_bytes = 0
        self._unsent: deque[memoryview] = deque()
        self._received = bytearray()
        self.process = subprocess.Popen(  # nosec B603  # noqa: S603 - this interpreter, and a file of this package
            # Ignores environment variables and user packages, doesn't import site, and writes no bytecode.
            [sys.executable, "-I", "-S", "-B", str(Path(child.__file__)), json.dumps(configuration)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            # The child can't open paths in it or anywhere else.
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        if self.process.stdin is None or self.process.stdout is None:
            raise LookupError("both are pipes")
        self._input, self._output = self.process.stdin.fileno(), self.process.stdout.fileno()
        for pipe in (self._input, self._output):
            os.set_blocking(pipe, False)

    def send(self, task: Task) -> None:
        """Queues the file. `advance` sends it."""
        request = task.request
        self.tasks.append(task)
        self.pending_bytes += len(request.content)
        names = request.path.encode(errors="replace"), request.language.encode()
        self._unsent.append(memoryview(_REQUEST.pack(*map(len, names), len(request.content)) + b"".join(names)))
        self._unsent.append(memoryview(request.content))

    def register(self, poll: select.poll) -> None:
        """Registers the events that the child waits for."""
        poll.register(self._output, select.POLLIN)
        if self.ready and self._unsent:
            poll.register(self._input, select.POLLOUT)

    def advance(self, events: Mapping[int, int]) -> None:
        """Reads and writes without waiting, and sets the outcomes of answered files.

        Raises Ended, after which the child is gone, and SandboxUnavailable if it can't start.
        """
        try:
            if self._output in events:
                self._read()
            elif self._input in events:
                self._write()
        except EOFError as failure:
            reason = self._reason_of_death()
            if not self.ready:
                raise SandboxUnavailable(f"it ended with {self.process.returncode}") from failure
            raise Ended(reason) from None
        except (ValueError, InvalidReport):
            self.end()
            raise Ended(FAILED) from None
        if not self.ready and time.monotonic() > self._started + self._bounds.start_seconds:
            self.end()
            raise SandboxUnavailable("it hangs")

    def _read(self) -> None:
        piece = os.read(self._output, _PIECE)
        if not piece:
            raise EOFError
        self._received += piece
        while (answer := self._next_answer()) is not None:
            if self.ready:
                self._take(answer)
            else:
                self._take_first(answer)
            self._allow_cpu_time()

    def _next_answer(self) -> bytes | None:
        """Returns one answer once it is complete. Raises ValueError if it is too long."""
        received, size = self._received, _ANSWER.size
        if len(received) < size:
            return None
        end = size + _ANSWER.unpack_from(received)[0]
        if end > self._bounds.answer_bytes:
            raise ValueError
        if len(received) < end:
            return None
        answer = bytes(received[size:end])
        del received[:end]
        return answer

    def _take_first(self, answer: bytes) -> None:
        """Takes the first answer, which the child sends once its sandbox is closed. Raises SandboxUnavailable."""
        if answer != b"ready":
            self.end()
            raise SandboxUnavailable(answer.decode(errors="replace"))
        self.ready = True

    def _take(self, answer: bytes) -> None:
        """Sets the outcome of the file in progress. Raises InvalidReport, also if no file is in progress."""
        if not self.tasks:
            raise InvalidReport
        try:
            outcome: Report | Skipped = read_report(answer, self._max_snippet_length)
        except Skipped as skipped:
            outcome = skipped
        self.settle(outcome)

    def settle(self, outcome: Report | Skipped) -> None:
        """Sets the outcome of the file in progress."""
        task = self.tasks.popleft()
        self.pending_bytes -= len(task.request.content)
        task.outcome = outcome

    def _allow_cpu_time(self) -> None:
        """Raises the child's CPU time limit to its usage plus the allowance for one file. The kernel kills it there."""
        if sys.platform == "linux":
            # The clock id of another process's CPU time, see clock_getcpuclockid(3).
            used = time.clock_gettime((~self.process.pid << 3) | 2)
            limit = math.ceil(used) + self._bounds.cpu_seconds
            if limit != self._cpu_limit:
                resource.prlimit(self.process.pid, resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
                self._cpu_limit = limit

    def _write(self) -> None:
        while self._unsent:
            try:
                sent = os.write(self._input, self._unsent[0][:_PIECE])
            except BlockingIOError:
                return
            except BrokenPipeError:
                # The child has ended. Read its earlier answers first, up to the end of its output.
                self._unsent.clear()
                return
            self._unsent[0] = self._unsent[0][sent:]
            if not self._unsent[0]:
                self._unsent.popleft()

    def _reason_of_death(self) -> str:
        """Reaps the child and returns why it ended. Native code that can't allocate memory crashes."""
        self.end()
        return CPU if self.process.returncode == -signal.SIGXCPU else CRASHED

    def end(self) -> None:
        """Kills the child if it is still running, and reaps it. Idempotent."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def _environment() -> dict[str, str]:
    """Returns the child's environment: empty unless the interpreter is a shared library, as on Lambda.

    That library may be outside the system's folders.
    """
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return {"LD_LIBRARY_PATH": f"{sys.base_prefix}/lib"}
    return {}

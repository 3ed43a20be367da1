"""The parent's side of the sandbox: one child process per scan, replaced whenever it is killed.

The child is never trusted. Its output is bounded and only ever parsed as a report; its wall time, CPU time, and memory
are limited from outside, by the kernel and by this process's own clock.
"""

from __future__ import annotations

import ctypes
import json
import logging
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
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

from scan_execution.analysis.files import Skipped
from scan_execution.analysis.limits import Limits
from scan_execution.analysis.report import Answer, InvalidReport, Report, Request, read_report
from scan_execution.sandbox import child
from scan_execution.sandbox.child import Configuration

_logger = logging.getLogger(__name__)
_ENTRY: Final = "scan_execution.sandbox.child:start_analysis"
# Packages that the child imports, except for the standard library.
_PACKAGES: Final = ("scan_execution", "ast_grep_py", "yaml")
_ANSWER: Final = struct.Struct(">I")
_REQUEST: Final = struct.Struct(">III")
_PIECE: Final = 64 * 1024
# Files sent ahead of the child's answers: enough that it never waits, and few enough to hold in memory.
_AHEAD_FILES: Final = 16
_AHEAD_BYTES: Final = 1024 * 1024
_PR_SET_DUMPABLE: Final = 4

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


class Sandbox:
    """A context manager that owns the child. The child starts on entry, and `examine` waits until it is ready."""

    def __init__(self, limits: Limits, bounds: Bounds | None = None, entry: str = _ENTRY) -> None:
        self._limits = limits
        self._bounds = bounds or Bounds()
        self._entry = entry
        self._child: _Child | None = None
        _hide_this_process()

    def __enter__(self) -> Self:
        self._child = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def examine(self, requests: Iterator[Request], deadline: float) -> Iterator[Answer]:
        """Yields each file with its report or the reason why it was skipped. Raises SandboxUnavailable.

        Sends a few files ahead, so that neither process waits for the other. If the child is killed, only the file
        in progress is skipped: a new child gets the others again. deadline: of the whole scan (time.monotonic()).
        """
        pending: deque[Request] = deque()
        while True:
            while len(pending) < _AHEAD_FILES and sum(len(it.content) for it in pending) < _AHEAD_BYTES:
                request = next(requests, None)
                if request is None:
                    break
                pending.append(request)
                if self._child is not None:
                    self._child.send(request)
            if not pending:
                return
            if time.monotonic() > deadline:
                yield pending.popleft(), Skipped("out of time")
                continue
            if self._child is None:
                self._child = self._start()
                for request in pending:
                    self._child.send(request)
            try:
                outcome: Report | Skipped = self._outcome(self._child, deadline)
            except Skipped as skipped:
                outcome = skipped
            yield pending.popleft(), outcome

    def _outcome(self, running: _Child, deadline: float) -> Report:
        """Returns the report on the next file. Raises Skipped."""
        try:
            return read_report(running.receive(deadline), self._limits.max_snippet_length)
        except _Ended as ended:
            reason = ended.reason
        except InvalidReport:
            running.end()
            reason = FAILED
        self._child = None
        # Never logs the path or anything that the child wrote.
        _logger.warning("analysis process ended: %s (exit status %s)", reason, running.process.returncode)
        raise Skipped(reason)

    def _start(self) -> _Child:
        configuration: Configuration = {
            "import_path": _import_path(self._entry),
            "entry": self._entry,
            "limits": asdict(self._limits),
            "cpu_seconds": math.ceil(self._bounds.start_seconds),
            "memory_bytes": self._bounds.memory_bytes,
        }
        return _Child(configuration, self._bounds)


class _Ended(Exception):
    """The child has exited and was reaped. `reason` is why its file is skipped."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Child:
    def __init__(self, configuration: Configuration, bounds: Bounds) -> None:
        self._bounds = bounds
        self._ready = False
        self._started = time.monotonic()
        self._cpu_limit = 0
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

    def send(self, request: Request) -> None:
        """Queues the file, which is sent while waiting for answers."""
        names = request.path.encode(errors="replace"), request.language.encode()
        self._unsent.append(memoryview(_REQUEST.pack(*map(len, names), len(request.content)) + b"".join(names)))
        self._unsent.append(memoryview(request.content))

    def receive(self, deadline: float) -> bytes:
        """Returns the next answer. Raises _Ended, after which the child is gone, and SandboxUnavailable."""
        if not self._ready:
            self._wait_until_ready()
        self._allow_cpu_time()
        try:
            return self._read_answer(min(deadline, time.monotonic() + self._bounds.wall_seconds))
        except TimeoutError:
            self.end()
            raise _Ended(WALL) from None
        except (EOFError, BrokenPipeError):
            raise _Ended(self._reason_of_death()) from None
        except ValueError:
            self.end()
            raise _Ended(FAILED) from None

    def _wait_until_ready(self) -> None:
        """Waits for the first answer, which the child sends once its sandbox is closed. Raises SandboxUnavailable."""
        try:
            answer = self._read_answer(self._started + self._bounds.start_seconds)
        except (TimeoutError, EOFError, ValueError) as failure:
            self.end()
            reason = f"it ended with {self.process.returncode}" if isinstance(failure, EOFError) else "it hangs"
            raise SandboxUnavailable(reason) from failure
        if answer != b"ready":
            self.end()
            raise SandboxUnavailable(answer.decode(errors="replace"))
        self._ready = True

    def _allow_cpu_time(self) -> None:
        """Raises the child's CPU time limit to its usage plus the allowance for one file. The kernel kills it there."""
        if sys.platform == "linux":
            # The clock id of another process's CPU time, see clock_getcpuclockid(3).
            used = time.clock_gettime((~self.process.pid << 3) | 2)
            limit = math.ceil(used) + self._bounds.cpu_seconds
            if limit != self._cpu_limit:
                resource.prlimit(self.process.pid, resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
                self._cpu_limit = limit

    def _read_answer(self, deadline: float) -> bytes:
        """Returns one answer. Raises TimeoutError, EOFError, BrokenPipeError, and ValueError if it is too long."""
        received, size = self._received, _ANSWER.size
        while True:
            if len(received) >= size:
                end = size + _ANSWER.unpack_from(received)[0]
                if end > self._bounds.answer_bytes:
                    raise ValueError
                if len(received) >= end:
                    answer = bytes(received[size:end])
                    del received[:end]
                    return answer
            # A child gets nothing until it is ready, so it holds no file before its sandbox is closed.
            sends = self._ready and bool(self._unsent)
            writable = self._wait(deadline, sends=sends)
            if writable:
                self._write()
            else:
                piece = os.read(self._output, _PIECE)
                if not piece:
                    raise EOFError
                received += piece

    def _wait(self, deadline: float, *, sends: bool) -> bool:
        """Waits for the child. Returns False if it can be read from, or True if it can only be written to."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        if sends:
            poll.register(self._input, select.POLLOUT)
        ready = dict(poll.poll(max(0.0, deadline - time.monotonic()) * 1_000))
        if not ready:
            raise TimeoutError
        return self._output not in ready

    def _write(self) -> None:
        while self._unsent:
            try:
                sent = os.write(self._input, self._unsent[0][:_PIECE])
            except BlockingIOError:
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


def _import_path(entry: str) -> list[str]:
    """Returns the folders of the child's packages, without importing them. Raises SandboxUnavailable."""
    folders = []
    for package in (*_PACKAGES, entry.partition(".")[0]):
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise SandboxUnavailable(f"{package} is not installed")
        folders.append(str(Path(next(iter(spec.submodule_search_locations))).parent))
    return list(dict.fromkeys(folders))


def _environment() -> dict[str, str]:
    """Returns the child's environment: empty unless the interpreter is a shared library, as on Lambda.

    That library may be outside the system's folders.
    """
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return {"LD_LIBRARY_PATH": f"{sys.base_prefix}/lib"}
    return {}


def _hide_this_process() -> None:
    """Hides this process's memory and environment, which hold credentials, from the user's other processes.

    See prctl(2). Raises SandboxUnavailable.
    """
    if sys.platform == "linux":
        if ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            raise SandboxUnavailable("this process could not be hidden from others")
    else:
        _logger.warning("Without Linux, the analysis runs in a process of its own, but with access to this machine.")

"""Measured processes: what to run (`Target`), a running one (`Worker`), and its recorded requests (`Recording`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.environment import LAMBDA, SYSTEM
from benchmarks.machine import cores
from benchmarks.wire import Call, Recorder, sequential

CHILD = Path(__file__).with_name("child.py")


class TargetFailed(Exception):
    """A measured process crashed, or returned an unexpected response."""


@dataclass(frozen=True)
class Target:
    """A handler to measure: the folders it can import from, its module, and its additional environment."""

    name: str
    folders: tuple[Path, ...]
    module: str
    environment: dict[str, str] = field(default_factory=dict)

    def with_environment(self, **more: str) -> Target:
        return replace(self, environment={**self.environment, **more})


class Worker:
    """A running target that has handled its first event; `report` describes that cold start."""

    def __init__(self, target: Target, event: dict[str, Any], *, modules: bool = False) -> None:
        self.target = target
        # A file instead of a pipe, so that a handler's log never blocks it.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in __exit__)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            bufsize=1,
            env={**SYSTEM, **LAMBDA, **target.environment},
        )
        os.sched_setaffinity(self._process.pid, cores()[1])
        job = {
            "folders": [str(folder) for folder in target.folders],
            "module": target.module,
            "event": event,
            "modules": modules,
        }
        self.report: dict[str, Any] = self._exchange(json.dumps(job))

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    @property
    def cold_ms(self) -> float:
        return float(self.report["init_ns"] + self.report["first_ns"]) / 1e6

    def expect(self, status: int) -> Worker:
        """Raises TargetFailed if the target's first response doesn't have the expected status."""
        answer = self.report["answer"]
        if answer["statusCode"] != status:
            raise TargetFailed(f"{self.target.name} answered {answer['statusCode']}: {answer.get('body', '')[:500]}")
        return self

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Sends another event once. Later runs repeat it."""
        answer: dict[str, Any] = self._exchange(json.dumps(event))
        return answer

    def run(self, invocations: int) -> tuple[float, float]:
        """Returns the mean (elapsed, CPU) microseconds of this many invocations with the last event."""
        elapsed, used = self._line(str(invocations)).split()
        return int(elapsed) / invocations / 1e3, int(used) / invocations / 1e3

    def _exchange(self, line: str) -> Any:
        return json.loads(self._line(line))

    def _line(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line + "\n")
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self._process.wait(10)
            self._errors.seek(0)
            raise TargetFailed(f"{self.target.name} broke:\n{self._errors.read()[-3000:]}")
        return answer


@dataclass(frozen=True)
class Recording:
    """One request: the event, its DynamoDB calls, and the response."""

    name: str
    event: dict[str, Any]
    calls: list[Call]
    answer: dict[str, Any]

    @property
    def status(self) -> int:
        return int(self.answer["statusCode"])

    @property
    def trips(self) -> int:
        return sequential(self.calls)

    @property
    def read_units(self) -> float:
        return sum(call.read_units for call in self.calls)

    @property
    def write_units(self) -> float:
        return sum(call.write_units for call in self.calls)

    def save(self, folder: Path) -> Path:
        """Writes the files that the floor replays."""
        calls = [{"operation": c.operation, "params": c.params, "status": c.status} for c in self.calls]
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps({"calls": calls, "answer": self.answer}))
        return path


def record(name: str, target: Target, recorder: Recorder, events: list[dict[str, Any]]) -> Recording:
    """Returns the cheapest of the given equivalent requests, which a new process of the target answers.

    The first request of a minute opens the credential's new window with a second write; that is one in hundreds.
    """
    recorder.take()
    with Worker(target, events[0]) as worker:
        found = [Recording(name, events[0], recorder.take(), worker.report["answer"])]
        for event in events[1:]:
            answer = worker.invoke(event)
            found.append(Recording(name, event, recorder.take(), answer))
    return min(found, key=lambda recording: len(recording.calls))

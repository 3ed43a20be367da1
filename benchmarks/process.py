"""Starting and driving measured processes: what to run (`Target`), and one running (`Worker`)."""

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

CHILD = Path(__file__).with_name("child.py")


class TargetFailed(Exception):
    """A measured process broke, or answered what it should not have."""


@dataclass(frozen=True)
class Target:
    """A handler to measure: the folders it may import from, its module, and what its environment adds."""

    name: str
    folders: tuple[Path, ...]
    module: str
    environment: dict[str, str] = field(default_factory=dict)

    def with_environment(self, **more: str) -> Target:
        return replace(self, environment={**self.environment, **more})

    def named(self, name: str) -> Target:
        return replace(self, name=name)


class Worker:
    """A running target that has answered its first event; `report` holds that cold start."""

    def __init__(self, target: Target, event: dict[str, Any], *, modules: bool = False) -> None:
        self.target = target
        # A file and not a pipe: what a handler logs there must never make it wait.
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
        told = {
            "folders": [str(folder) for folder in target.folders],
            "module": target.module,
            "event": event,
            "modules": modules,
        }
        self.report: dict[str, Any] = self._ask(json.dumps(told))

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
        """Refuses to measure a target whose first answer is not the one meant."""
        answer = self.report["answer"]
        if answer["statusCode"] != status:
            raise TargetFailed(f"{self.target.name} answered {answer['statusCode']}: {answer.get('body', '')[:500]}")
        return self

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """Another event, once; later runs repeat it."""
        answer: dict[str, Any] = self._ask(json.dumps(event))
        return answer

    def run(self, invocations: int) -> tuple[float, float]:
        """(elapsed, CPU) microseconds an invocation took, over this many of the last event."""
        elapsed, used = self._line(str(invocations)).split()
        return int(elapsed) / invocations / 1e3, int(used) / invocations / 1e3

    def _ask(self, line: str) -> Any:
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

"""Records requests against the engine: their calls, their responses, and the files that the floor replays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.process import Target, Worker
from benchmarks.wire import Call, Recorder, sequential


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

"""Warm requests on one core, against the naive peer and the floor: over a loopback connection to the stand-in, and
without a socket, which is the same for all of them and most of a call.

Log line and metric are included for ours; neither peer writes any.
"""

from __future__ import annotations

import json
import statistics
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import goals
from benchmarks.bench import Bench
from benchmarks.goals import Figure
from benchmarks.measured import PEER_KEY, PROJECT, rest_event
from benchmarks.process import Recording, Target, Worker, record
from benchmarks.report import interleave, ratio, table
from benchmarks.socketless import VARIABLE

ROUNDS = 15
BATCH = {"get": 60, "patch": 50, "list": 30, "regions": 100}
WARM_UP = 120
SOCKET = "socket"
WAYS = (SOCKET, "no socket")

# Request, transport to DynamoDB, target.
type Contender = tuple[str, str, str]


class Measured(NamedTuple):
    """Microseconds of each round."""

    elapsed: dict[Contender, list[float]]
    cpu: dict[Contender, list[float]]


def _events(project_id: str, token: str | None) -> dict[str, dict[str, object]]:
    named = {"path": {"projectId": project_id}, "token": token}
    return {
        "get": rest_event("GET", PROJECT, **named),  # type: ignore[arg-type]
        "patch": rest_event("PATCH", PROJECT, body={"description": "Another description"}, **named),  # type: ignore[arg-type]
        "list": rest_event("GET", "/v1/projects", query={"limit": "50"}, token=token),
        "regions": rest_event("GET", "/v1/regions"),
    }


GROUP = {"get": "projects", "patch": "projects", "list": "projects", "regions": "system"}


def record_warm(bench: Bench) -> tuple[dict[str, Recording], dict[str, Recording]]:
    """Returns the (ours, peer's) recordings of each request."""
    with bench.recorded_world() as (world, recorder, address, peer_project):
        ours = {
            name: record(f"warm-{name}", bench.our_target(GROUP[name], address), recorder, [event] * 3)
            for name, event in _events(world.projects[0], world.api_key).items()
        }
        peers = {
            name: record(f"naive-{name}", bench.naive_target(address), recorder, [event] * 2)
            for name, event in _events(peer_project, PEER_KEY).items()
        }
    return ours, peers


def measure(bench: Bench) -> tuple[list[Figure], str]:
    """Figures of goals 3, 4 and 5, and the medians in microseconds behind them."""
    ours, peers = record_warm(bench)
    answers = _save_answers(bench, [*ours.values(), *peers.values()])
    with ExitStack() as stack:
        address = stack.enter_context(bench.replaying([*ours.values(), *peers.values()], tls=False))
        workers: dict[Contender, Worker] = {}
        for name, recording in ours.items():
            for who, (target, played) in _targets(bench, name, recording, peers[name], address).items():
                for where in WAYS if recording.calls else WAYS[:1]:
                    chosen = target if where == SOCKET else target.with_environment(**{VARIABLE: str(answers)})
                    worker = stack.enter_context(Worker(chosen, played.event)).expect(200)
                    worker.run(WARM_UP)
                    workers[name, where, who] = worker
        used: dict[Contender, list[float]] = {key: [] for key in workers}

        def run(key: Contender) -> float:
            elapsed, cpu = workers[key].run(BATCH[key[0]])
            used[key].append(cpu)
            return elapsed

        times = interleave(workers, run, ROUNDS)
    figures = []
    for name, recording in ours.items():
        for where in WAYS:
            calls, others = len(recording.calls), len(peers[name].calls)
            notes = {"ours": f"{calls} calls, ", "floor": "", "naive": f", {others} calls" if others != calls else ""}
            figures += _figures(name, where, notes, Measured(times, used))
    rows = [(", ".join(key), statistics.median(took), statistics.median(used[key])) for key, took in times.items()]
    return figures, table(rows, ("warm request, median us", "elapsed", "cpu"))


def _targets(
    bench: Bench, name: str, recording: Recording, peer: Recording, address: str
) -> dict[str, tuple[Target, Recording]]:
    """Returns the targets (ours, naive, and, if there are calls, the floor), with their recordings."""
    at = f"{address}/{recording.name}"
    targets = {
        "ours": (bench.our_target(GROUP[name], at), recording),
        "naive": (bench.naive_target(f"{address}/{peer.name}"), peer),
    }
    if recording.calls:
        targets["floor"] = (bench.floor_target(recording, at), recording)
    return targets


def _save_answers(bench: Bench, recordings: list[Recording]) -> Path:
    """Replaces DynamoDB without a socket."""
    calls: dict[str, list[dict[str, Any]]] = {recording.name: [] for recording in recordings}
    for recording in recordings:
        for call in recording.calls:
            calls[recording.name].append({**asdict(call), "started": 0, "ended": 0})
    path = bench.folder / "answers.json"
    path.write_text(json.dumps(calls))
    return path


def _figures(name: str, where: str, notes: dict[str, str], measured: Measured) -> list[Figure]:
    goal, floor_bound, naive_bound = _bounds(name, where)
    own = name, where, "ours"
    found = []
    for other, bound in (("floor", floor_bound), ("naive", naive_bound)):
        key = name, where, other
        if key in measured.elapsed:
            elapsed, cpu = (ratio(each[own], each[key]) for each in measured)
            note = f"elapsed {elapsed:.2f}{notes[other]}"
            found.append(Figure(goal, f"{name} ({notes['ours']}{where})", cpu, f"x {other}", bound, note))
    return found


def _bounds(name: str, where: str) -> tuple[str, float | None, float]:
    if name == "list":
        return "4", goals.LIST_FLOOR, goals.LIST_NAIVE
    if name == "regions":
        return "5", None, goals.NO_DATABASE_NAIVE
    if where != SOCKET:
        return "3", goals.SOCKETLESS_FLOOR, goals.SOCKETLESS_NAIVE
    return "3", goals.REQUEST_FLOOR, goals.REQUEST_NAIVE

"""Warm requests on one core, against the naive peer and the floor, over a loopback connection to the stand-in.

Log line and metric are included for ours; neither peer writes any.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack

from benchmarks.bench import Bench
from benchmarks.events import rest_event
from benchmarks.goals import LIST_FLOOR, LIST_NAIVE, NO_DATABASE_NAIVE, REQUEST_FLOOR, REQUEST_NAIVE, Figure
from benchmarks.process import Worker
from benchmarks.recording import Recording, record
from benchmarks.report import table
from benchmarks.rounds import interleave, ratio
from benchmarks.world import PEER_KEY, World

ROUNDS = 15
BATCH = {"get": 60, "patch": 50, "list": 30, "regions": 100}
WARM_UP = 120

PROJECT = "/v1/projects/{projectId}"


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
    """(ours, the peer's) recording of each request."""
    with bench.recorded_world() as (world, recorder, address, peer_project):
        ours = {
            name: record(f"warm-{name}", world.workers[GROUP[name]], recorder, [event] * 3)
            for name, event in _own_events(world).items()
            if GROUP[name] in world.workers
        }
        events = _events(peer_project, PEER_KEY)
        with Worker(bench.naive_target(address), events["get"]) as naive:
            peers = {name: record(f"naive-{name}", naive, recorder, [events[name]] * 2) for name in ours}
    return ours, peers


def _own_events(world: World) -> dict[str, dict[str, object]]:
    return _events(world.projects[0] if world.projects else "none", world.api_key)


def measure(bench: Bench) -> tuple[list[Figure], str]:
    """Figures of goals 3, 4 and 5, and the medians in microseconds behind them."""
    ours, peers = record_warm(bench)
    with ExitStack() as stack:
        address = stack.enter_context(bench.replaying([*ours.values(), *peers.values()], tls=False))
        workers: dict[tuple[str, str], Worker] = {}
        for name, recording in ours.items():
            at, peer = f"{address}/{recording.name}", peers[name]
            targets = {
                "ours": (bench.our_target(GROUP[name], at), recording),
                "naive": (bench.naive_target(f"{address}/{peer.name}"), peer),
            }
            if recording.calls:
                targets["floor"] = (bench.floor_target(recording, at), recording)
            for who, (target, played) in targets.items():
                worker = stack.enter_context(Worker(target, played.event)).expect(200)
                worker.run(WARM_UP)
                workers[name, who] = worker
        used: dict[tuple[str, str], list[float]] = {key: [] for key in workers}

        def run(key: tuple[str, str]) -> float:
            elapsed, cpu = workers[key].run(BATCH[key[0]])
            used[key].append(cpu)
            return elapsed

        times = interleave(workers, run, ROUNDS)
    figures = []
    for name, recording in ours.items():
        goal, floor_bound, naive_bound = _bounds(name)
        subject = f"{name} ({len(recording.calls)} calls)"
        for other, bound in (("floor", floor_bound), ("naive", naive_bound)):
            if (name, other) in times:
                note = f"cpu {ratio(used[name, 'ours'], used[name, other]):.2f}"
                if other == "naive" and len(peers[name].calls) != len(recording.calls):
                    note += f", peer: {len(peers[name].calls)} calls"
                measured = ratio(times[name, "ours"], times[name, other])
                figures.append(Figure(goal, subject, measured, f"x {other}", bound, note))
    rows = [
        (f"{name}, {who}", statistics.median(took), statistics.median(used[name, who]))
        for (name, who), took in times.items()
    ]
    return figures, table(rows, ("warm request, median us", "elapsed", "cpu"))


def _bounds(name: str) -> tuple[str, float | None, float]:
    if name == "list":
        return "4", LIST_FLOOR, LIST_NAIVE
    if name == "regions":
        return "5", None, NO_DATABASE_NAIVE
    return "3", REQUEST_FLOOR, REQUEST_NAIVE

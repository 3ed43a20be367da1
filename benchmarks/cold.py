"""Measures the cold start of every function, and counts the modules of other functions that it loads.

From a process that has loaded what the Lambda runtime loads, to the first answer: the handler's import and one request,
with DynamoDB's stand-in behind TLS. Each round starts every contender once.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.bench import Bench
from benchmarks.goals import COLD_DASHBOARD_NAIVE, COLD_FLOOR, COLD_NAIVE, Figure
from benchmarks.measured import COLD, PEER_KEY, PROJECT, rest_event
from benchmarks.process import Recording, Target, Worker, record
from benchmarks.report import interleave, ratio, table

ROUNDS = 11


def record_cold(bench: Bench) -> list[Recording]:
    """Records each function's request, and the peer's, against the engine."""
    with bench.recorded_world() as (world, recorder, address, peer_project):
        found = []
        for request in COLD:
            if request.group in bench.functions:
                event = request.event(world, request.credentials[0])
                target = bench.our_target(request.group, address)
                found.append(record(f"cold-{request.group}", target, recorder, [event] * 3))
        event = rest_event("GET", PROJECT, path={"projectId": peer_project}, token=PEER_KEY)
        found.append(record("cold-naive", bench.naive_target(address), recorder, [event] * 2))
    return found


def measure(bench: Bench) -> tuple[list[Figure], str]:
    """Figures of goals 1 and 9, and the medians in milliseconds behind them."""
    recordings = record_cold(bench)
    by_name = {recording.name.removeprefix("cold-"): recording for recording in recordings}
    groups = [name for name in by_name if name != "naive"]
    with bench.replaying(recordings, tls=True) as address:
        contenders: dict[str, tuple[Target, Recording]] = {
            "naive": (bench.naive_target(f"{address}/cold-naive"), by_name["naive"])
        }
        for group in groups:
            recording, at = by_name[group], f"{address}/cold-{group}"
            contenders[group] = (bench.our_target(group, at), recording)
            contenders[f"floor of {group}"] = (bench.floor_target(recording, at), recording)
        init: dict[str, list[float]] = {name: [] for name in contenders}
        cpu: dict[str, list[float]] = {name: [] for name in contenders}
        foreign = sum(_foreign_modules(bench, *contenders[group]) for group in groups)

        def start(name: str) -> float:
            target, recording = contenders[name]
            with Worker(target, recording.event) as worker:
                worker.expect(recording.status)
                init[name].append(worker.report["init_ns"] / 1e6)
                cpu[name].append(worker.report["cpu_ns"] / 1e6)
                return worker.cold_ms

        times = interleave(contenders, start, ROUNDS)
    figures = []
    for group in groups:
        of_naive = COLD_DASHBOARD_NAIVE if group == "dashboard" else COLD_NAIVE
        for peer, unit, bound in (("naive", "x naive", of_naive), (f"floor of {group}", "x floor", COLD_FLOOR)):
            note = f"elapsed {ratio(times[group], times[peer]):.2f}"
            figures.append(Figure("1", group, ratio(cpu[group], cpu[peer]), unit, bound, note))
    figures.append(Figure("9", "all functions together", foreign, "modules", 0))
    rows = [
        (name, median(init[name]), median(took) - median(init[name]), median(took), median(cpu[name]))
        for name, took in times.items()
    ]
    return figures, table(rows, ("cold start, median ms", "init", "first", "both", "cpu"))


def _foreign_modules(bench: Bench, target: Target, recording: Recording) -> int:
    others = set(bench.functions) - {target.name}
    with Worker(target, recording.event, modules=True) as worker:
        loaded: list[Any] = worker.report["modules"]
    return sum(module.partition(".")[0] in others for module in loaded)

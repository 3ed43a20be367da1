"""Drives the local stack with a realistic mix of requests at rising concurrency, next to the naive peer.

Prints throughput, latency percentiles, and errors of both sides, which run alternately. With --soak, drives only ours,
at a constant concurrency, and shows whether memory, connections, or the table grow. Always exits with 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections import Counter
from typing import IO, Any, NamedTuple

from benchmarks.load import soak
from benchmarks.load.figures import percentile
from benchmarks.load.stack import Side, stack
from benchmarks.machine import ROOT
from benchmarks.report import table

LOCUST = ROOT / ".tools" / "load" / "bin" / "locust"
USERS = ROOT / "benchmarks" / "load" / "users.py"
CONCURRENCY = (1, 2, 4, 8, 16)
SECONDS = 10
PERCENTILES = (50, 90, 99)


class Level(NamedTuple):
    """The result of one level of concurrency. Latencies are in milliseconds."""

    requests_per_second: float
    latencies: tuple[float, ...]
    errors: int


class Callers(NamedTuple):
    """Running users, and the file with their result, which can be larger than a pipe holds."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]


def start(side: Side, users: int, seconds: int, **variables: str) -> Callers:
    """Starts so many users, all at once, each with one request at a time."""
    command = [str(LOCUST), "--locustfile", str(USERS), "--headless", "--json", "--host", side.url]
    options = [
        "--users",
        str(users),
        "--spawn-rate",
        str(users),
        "--run-time",
        f"{seconds}s",
        "--loglevel",
        "ERROR",
        "--stop-timeout",
        "10",
    ]
    environment = {**os.environ, "LOAD_KEY": side.key, "LOAD_PROJECTS": ",".join(side.projects), **variables}
    output = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it is no longer used)
    return Callers(
        subprocess.Popen([*command, *options], env=environment, stdout=output, stderr=subprocess.DEVNULL), output
    )


def read(callers: Callers) -> Level:
    """Waits for the users, and returns their result."""
    callers.process.wait()
    callers.output.seek(0)
    entries: list[dict[str, Any]] = json.load(callers.output)
    times: Counter[float] = Counter()
    for entry in entries:
        times.update({float(took): count for took, count in entry["response_times"].items()})
    begun, ended = min(it["start_time"] for it in entries), max(it["last_request_timestamp"] for it in entries)
    latencies = tuple(percentile(times, percent) for percent in PERCENTILES)
    return Level(times.total() / (ended - begun), latencies, sum(it["num_failures"] for it in entries))


def measure(levels: tuple[int, ...], seconds: int) -> str:
    rows = []
    with stack() as sides:
        for users in levels:
            found = {name: read(start(side, users, seconds)) for name, side in sides.items()}
            ratio = found["ours"].requests_per_second / found["naive"].requests_per_second
            rows += [
                (
                    users if name == "ours" else "",
                    name,
                    round(level.requests_per_second),
                    *level.latencies,
                    level.errors,
                )
                + ((f"{ratio:.2f} x naive",) if name == "ours" else ("",))
                for name, level in found.items()
            ]
    return table(rows, ("callers", "", "requests/s", *(f"p{it} ms" for it in PERCENTILES), "errors", "throughput"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--callers", type=int, nargs="+", default=CONCURRENCY, help="levels of concurrency")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of each level and side")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="look for growth instead")
    options = parser.parse_args()
    if options.soak:
        with stack() as sides:
            side = sides["ours"]
            callers = start(side, soak.CALLERS, round(options.soak * 60), LOAD_DELETES="yes")
            growth = soak.watch(side, callers.process)
            level = read(callers)
        print(f"{level.requests_per_second:.0f} requests/s, {level.errors} errors\n\n{growth}")
    else:
        print(measure(tuple(options.callers), options.seconds))


if __name__ == "__main__":
    main()

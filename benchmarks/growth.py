"""The same requests in a table of 1,000 and of 100,000 items: the same units, and about the same time.

Two engines run side by side and take turns. The filler is made of the seeded items themselves under other partitions,
and of more projects in the very partition that is read.
"""

from __future__ import annotations

import copy
import itertools
import json
import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from benchmarks.bench import Bench
from benchmarks.events import rest_event
from benchmarks.goals import GROWTH_TIME, Figure
from benchmarks.machine import engine
from benchmarks.process import Worker
from benchmarks.project import TABLE
from benchmarks.recording import Recording, record
from benchmarks.report import table
from benchmarks.rounds import interleave, ratio
from benchmarks.wire import Recorder, Server
from benchmarks.world import World, populated
from controlplane.store.table import table as store

SIZES = (1_000, 100_000)
ROUNDS, BATCH = 9, 40
# How many of the added items lie in the organization that is read.
SAME_PARTITION = 0.05
_BATCH_WRITE = 25


def fill(client: Any, world: World, size: int) -> None:
    """Brings the table to `size` items."""
    seeded = client.scan(TableName=TABLE)["Items"]
    others = _other_partitions(seeded)
    missing = size - len(seeded)
    more_here = _more_projects(seeded, f"ORG#{world.organization_id}")
    here = list(itertools.islice(more_here, int(missing * SAME_PARTITION)))
    items = itertools.chain(here, itertools.islice(others, missing - len(here)))
    while batch := list(itertools.islice(items, _BATCH_WRITE)):
        client.batch_write_item(RequestItems={TABLE: [{"PutRequest": {"Item": item}} for item in batch]})


def _other_partitions(seeded: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for n in itertools.count():
        for item in seeded:
            yield {**item, "pk": {"S": f"{item['pk']['S']}~{n}"}}


def _more_projects(seeded: list[dict[str, Any]], pk: str) -> Iterator[dict[str, Any]]:
    """Older projects of the same organization: behind the first page, as history is."""
    projects = [item for item in seeded if item["pk"]["S"] == pk and item["sk"]["S"].startswith("PROJECT#")]
    for n in itertools.count() if projects else ():
        item = copy.deepcopy(projects[n % len(projects)])
        item["sk"]["S"] = f"PROJECT#00{n:016d}"
        yield item


def measure(bench: Bench) -> tuple[list[Figure], str]:
    """Per request: units of the larger table over those of the smaller, and time likewise."""
    recordings: dict[tuple[str, int], Recording] = {}
    workers: dict[tuple[str, int], Worker] = {}
    with ExitStack() as stack:
        for size in SIZES:
            url = stack.enter_context(engine())
            recorder = Recorder(url)
            server = stack.enter_context(Server(recorder))
            world = stack.enter_context(populated(bench.ours, bench.functions, url, server.url))
            fill(store.client, world, size)
            for name, event in _events(world).items():
                recordings[name, size] = record(name, world.workers["projects"], recorder, [event] * 3)
                worker = stack.enter_context(Worker(bench.our_target("projects", url), event)).expect(200)
                worker.run(BATCH)
                workers[name, size] = worker
        times = interleave(workers, lambda key: workers[key].run(BATCH)[0], ROUNDS)
    small, large = SIZES
    figures, rows = [], []
    for name in _NAMES:
        few, many = recordings[name, small], recordings[name, large]
        units = (few.read_units + few.write_units, many.read_units + many.write_units)
        figures.append(
            Figure("growth", f"{name}, units", units[1] / units[0], "x", 1.0, f"{units[0]:g} and {units[1]:g}")
        )
        took = ratio(times[name, large], times[name, small])
        figures.append(Figure("growth", f"{name}, time", took, "x", GROWTH_TIME))
        rows.append((name, *(statistics.median(times[name, size]) for size in SIZES)))
    return figures, table(rows, ("growth, median us with the engine", *(f"{size:,} items" for size in SIZES)))


_NAMES = ("get", "list", "patch")


def _events(world: World) -> dict[str, dict[str, Any]]:
    named: dict[str, Any] = {"path": {"projectId": world.projects[-1]}, "token": world.api_key}
    project = "/v1/projects/{projectId}"
    return {
        "get": rest_event("GET", project, **named),
        "list": rest_event("GET", "/v1/projects", query={"limit": "50"}, token=world.api_key),
        "patch": rest_event("PATCH", project, body={"description": json.dumps("changed")}, **named),
    }

"""Runs what the load test drives: a DynamoDB engine, and one server process of each side on it.

Ours is what `make run` serves: every function's app behind the local gateway. The engine is faster than MiniStack,
whose own time would hide the difference between the sides.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.environment import LAMBDA, PEER_TABLE
from benchmarks.machine import ROOT, engine
from benchmarks.package import PEERS, Package
from benchmarks.project import TABLE, functions
from benchmarks.world import PEER_KEY, PROJECTS, peer_project_id, populate_peer, populated
from controlplane.store.table import table
from tests.support.engines import free_port, stop, wait_until_listening

_PROJECT = {"name": "Load test", "region": "eu-central", "websites": ["https://load.example.com"]}


@dataclass(frozen=True)
class Side:
    """A running server, and what its callers need."""

    url: str
    process: subprocess.Popen[bytes]
    key: str
    projects: tuple[str, ...]


@contextmanager
def stack() -> Iterator[dict[str, Side]]:
    """Runs both sides with as many projects each. Yields them by name."""
    with ExitStack() as running:
        address = running.enter_context(engine())
        world = running.enter_context(populated(Package(Path(), {}, ""), {}, address, address))
        populate_peer(address)
        ours, process = running.enter_context(_serving("local.server:app", address, TABLE))
        with httpx.Client(base_url=ours, headers={"Authorization": f"Bearer {world.api_key}"}) as client:
            created = [client.post("/v1/projects", json=_PROJECT).raise_for_status() for _ in range(PROJECTS)]
        projects = tuple(response.json()["data"]["id"] for response in created)
        naive, peer = running.enter_context(_serving("naive:app", address, PEER_TABLE))
        table.connect(address, TABLE)
        yield {
            "ours": Side(ours, process, world.api_key, projects),
            "naive": Side(naive, peer, PEER_KEY, tuple(map(peer_project_id, range(PROJECTS)))),
        }


@contextmanager
def _serving(app: str, address: str, table_name: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        **{name: value for function in functions().values() for name, value in function.environment.items()},
        **LAMBDA,
        "AWS_ENDPOINT_URL": address,
        "TABLE_NAME": table_name,
        "PUBLIC_BASE_URL": url,
        "DASHBOARD_BASE_URL": url,
        "LOG_LEVEL": "ERROR",
        "POWERTOOLS_METRICS_DISABLED": "true",
    }
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        app,
        "--app-dir",
        str(PEERS),
        "--port",
        str(port),
        "--log-level",
        "error",
        "--no-access-log",
    ]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_until_listening(process, port)
        yield url, process
    finally:
        stop(process)


def stored_items() -> list[dict[str, Any]]:
    """Returns every item of our table."""
    items: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        page = table.client.scan(TableName=TABLE, ConsistentRead=True, **start)
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

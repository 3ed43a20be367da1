"""The table capacity that requests and scans consume.

The tests are here because dynoxide, the engine of the races, counts units as DynamoDB does. moto doesn't.
"""

from typing import Any
from uuid import uuid4

import pytest

from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.scans import reads
from tests.functional.conftest import FakeClock, api, now, world
from tests.functional.projects.builders import make_project
from tests.functional.scan_execution.test_execute_scan import FILES
from tests.support.api import Api
from tests.support.audits import make_scan, preparation_worker, scan_worker
from tests.support.calls import Call, Proceed, intercepted
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.engines import Engine
from tests.support.missing import is_missing
from tests.support.sqs import FakeSqs
from tests.support.table import PREPARED, create_table
from tests.support.world import World

__all__ = ["api", "now", "world"]

READS = {"GetItem", "BatchGetItem", "Query"}


class Meter:
    """Sums the consumed capacity that DynamoDB reports for each call."""

    def __init__(self) -> None:
        self.read_units = self.write_units = 0.0

    def around(self, call: Call, proceed: Proceed) -> Any:
        call.parameters["ReturnConsumedCapacity"] = "TOTAL"
        answer = proceed()
        consumed = answer.get("ConsumedCapacity") or []
        units = sum(one["CapacityUnits"] for one in (consumed if isinstance(consumed, list) else [consumed]))
        if call.operation in READS:
            self.read_units += units
        else:
            self.write_units += units
        return answer


@pytest.fixture(autouse=True)
def _counting_engine(engine: Engine, now: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine.name != "dynoxide":
        is_missing("dynoxide isn't installed")
    monkeypatch.setitem(vars(table), "client", engine.client)
    monkeypatch.setattr(table, "name", f"units-{uuid4().hex}")
    create_table(engine.client, table.name)


def test_a_request_consumes_the_same_however_many_items_there_are(api: Api, world: World):
    company = world.company()
    key = world.key(company)
    projects = [make_project(company) for _ in range(12)]
    path = f"/v1/projects/{projects[-1].project_id}"

    def consumed() -> list[tuple[float, float]]:
        units = []
        for method, target, body in (
            ("GET", path, None),
            ("PATCH", path, {"description": "Changed"}),
            ("GET", "/v1/projects?limit=10", None),
        ):
            meter = Meter()
            with intercepted(table.client, meter.around):
                assert api.call(method, target, key, json_body=body).status == 200
            units.append((meter.read_units, meter.write_units))
        return units

    consumed()  # opens the key's window, which takes a write more
    few = consumed()
    stored = table.get(keys.project(*projects[0].project_id.location))
    table.put_all(({**(stored or {}), "sk": f"PROJECT#00{number:016d}"} for number in range(1_000)), PREPARED)
    assert consumed() == few


def test_a_scan_consumes_what_the_documents_say(api: Api, world: World, sqs: FakeSqs, now: FakeClock):
    """docs/performance.md computes with these numbers."""
    company = world.company()
    repository = world.connected_repository(company)
    make_scan(repository)  # the free preview: the next scan publishes all findings
    now.advance(60)
    host = FakeHost({(repository.owner, repository.name, "main"): SHA}, {SHA: archive(FILES)})
    meter = Meter()
    with intercepted(table.client, meter.around):
        reply = api.post(
            "/v1/code-audit/scans", company.owner.token, json_body={"repositoryId": repository.repository_id}
        )
        assert reply.status == 202
        (letter,) = sqs.due(Queue.SCAN_PREPARATION.url)
        sqs.deliver(letter, preparation_worker(host), Queue.SCAN_PREPARATION.dead_letters_url)
        (letter,) = sqs.due(Queue.SCAN_EXECUTION.url)
        sqs.deliver(letter, scan_worker(host), Queue.SCAN_EXECUTION.dead_letters_url)
    scan = reads.list_scans(company.organization_id, 1, None).items[0]
    assert scan.issue_count == 6
    # Approximate: a changed attribute must not fail this, but another write per finding must.
    assert meter.write_units == pytest.approx(180, rel=0.15)
    assert meter.read_units == pytest.approx(28.5, rel=0.25)

"""The table capacity that a scan consumes, from its API request to its findings in the inbox.

benchmarks/scale.py computes with these numbers, so this test checks them.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import scale
from controlplane.queues.messages import Queue
from controlplane.store import scans
from controlplane.store.table import table
from tests.functional.conftest import FakeClock
from tests.functional.scan_execution.test_execute_scan import FILES, worker
from tests.support.api import Api
from tests.support.audits import make_scan, preparation_worker
from tests.support.calls import Call, Proceed, intercepted
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.engines import find_engine, sequential_client
from tests.support.mailbox import Mailbox
from tests.support.table import create_table
from tests.support.world import World

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
def _counting_engine(_fresh_table: None) -> Iterator[None]:
    """Provides the table on dynoxide: moto doesn't compute the units of a call."""
    client = table.client
    with sequential_client("fast") as table._client:
        create_table(table.client, table.name)
        yield
    table._client = client


@pytest.mark.skipif((find_engine() or ("",))[0] != "dynoxide", reason="dynoxide isn't installed")
def test_a_scan_consumes_what_the_simulation_says(api: Api, world: World, mailbox: Mailbox, now: FakeClock):
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
        (letter,) = mailbox.due(Queue.SCAN_PREPARATION.url)
        mailbox.deliver(letter, preparation_worker(host), Queue.SCAN_PREPARATION.dead_letters_url)
        (letter,) = mailbox.due(Queue.SCAN_EXECUTION.url)
        mailbox.deliver(letter, worker(host), Queue.SCAN_EXECUTION.dead_letters_url)
    scan = scans.list_scans(company.organization_id, 1, None).scans[0]
    assert scan.issue_count == 6
    # Approximate: a changed attribute must not fail this, but another write per finding must.
    assert meter.write_units == pytest.approx(scale.SCAN_WRITE_UNITS, rel=0.15)
    assert meter.read_units == pytest.approx(scale.SCAN_READ_UNITS, rel=0.25)

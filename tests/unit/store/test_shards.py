"""The shard count of every partition that all callers write to."""

from collections import Counter
from typing import Any

from controlplane.platform.core import ids
from controlplane.platform.core.ids import InboxItemId, ScanId, ScanRequestId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import CreateIssue, ExecuteScan, PrepareScan, PublishScan, Queue
from controlplane.platform.table import keys, shards
from controlplane.scans.items import watch_key

# DynamoDB's quotas for one partition key, in units per second. Hashes are spread unevenly: a partition may be at most
# two thirds full on average.
WRITE_UNITS, READ_UNITS, FULL = 1_000, 3_000, 2 / 3
OPERATIONS = 10_000
# The cost of one operation in units: a Put or Delete of an item below 1 KB costs 1, or 2 in a transaction. An entry has
# both.
WRITES = {"ENTRIES": 4, "FEEDBACK": 2}
READS = {"FEEDBACK_INTAKE": 1}


def test_there_are_enough_shards_for_the_operations():
    for costs, units in ((WRITES, WRITE_UNITS), (READS, READ_UNITS)):
        for name, cost in costs.items():
            assert OPERATIONS * cost / getattr(shards, name) <= units * FULL, name
    assert {name for name in vars(shards) if name.isupper()} == WRITES.keys() | READS.keys()


def size(item: dict[str, Any]) -> int:
    """Returns an upper bound of the size that DynamoDB counts: names and values as text."""
    return sum(len(str(name)) + len(str(value)) for name, value in item.items())


def test_items_counted_as_1_kb_are_smaller():
    organization_id = "org_" + "0" * 16
    request_id = ScanRequestId.of(organization_id, ids.new_local())
    scan_id, item_id = (kind.of(organization_id, ids.new_local()) for kind in (ScanId, InboxItemId))
    examples = [PrepareScan(request_id=request_id), ExecuteScan(scan_id=scan_id), PublishScan(scan_id=scan_id)]
    for message in [*examples, CreateIssue(item_id=item_id)]:
        assert size(dict(messages.entry(Queue.SCAN_EXECUTION, message).leg.item)) < 1024
    watch = {**watch_key(request_id)._asdict(), "requestId": request_id, "repositoryId": scan_id}
    assert size(watch) < 1024


def test_ids_are_spread_evenly_over_the_shards():
    organization_id = "org_" + "0" * 16
    made = [ScanRequestId.of(organization_id, ids.new_local()) for _ in range(64_000)]
    found = Counter(keys.scan_watch("2026", request_id).pk for request_id in made)
    assert len(found) == shards.ENTRIES
    # 1,000 each on average, with a standard deviation of 32.
    assert max(found.values()) < 1_250


def test_the_time_of_a_watch_follows_from_the_id():
    assert ids.created_at(ids.local_at(1_772_600_767.123) + "0" * 8) == 1_772_600_767.123

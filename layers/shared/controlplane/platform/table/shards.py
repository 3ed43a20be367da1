"""The number of partitions for items that every caller writes to, and the arithmetic behind each number.

DynamoDB takes at most 1,000 write units and 3,000 read units a second for one partition key (DynamoDB Developer Guide,
"Quotas": partition throughput). A write costs one unit per started KB, twice as much inside a transaction, and a delete
costs as much as a write. Each number is the smallest round one that takes 10,000 operations a second with every
partition at most two thirds full, because keys spread unevenly within any one second. `tests/unit/store/test_shards.py`
repeats the calculation.

A shard derived from an id must stay findable: never change these numbers without also reading the old partitions.
"""

import zlib

# Entries of work for the sweep, below 1 KB. The Put and the Delete of most of them are both in a transaction, 2 units
# each: 40,000 units a second, 625 a shard.
ENTRIES = 64
# A report's item in the day's partition is below 1 KB, because a longer report has its texts in a separate partition:
# its Put in a transaction takes 2 units. 20,000 units a second, 625 a shard. A day is read by a query for each.
FEEDBACK = 32
# Copies of the switch; each new report reads one copy, consistently: 1 read unit. 10,000 units, 1,250 a copy.
FEEDBACK_INTAKE = 8


def shard_of(text: str, shards: int) -> int:
    """Returns the shard of a text, the same in every process and release."""
    return zlib.crc32(text.encode()) % shards


def partition_of(name: str, text: str) -> str:
    """Returns the partition of the entry for a text, among those with that name."""
    return f"{name}#{shard_of(text, ENTRIES)}"


def partitions(name: str) -> tuple[str, ...]:
    return tuple(f"{name}#{shard}" for shard in range(ENTRIES))

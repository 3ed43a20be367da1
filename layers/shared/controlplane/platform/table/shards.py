"""The number of partitions for items that every caller writes to, and the arithmetic behind each number.

DynamoDB takes at most 1,000 write units and 3,000 read units a second for one partition key (DynamoDB Developer Guide,
"Quotas": partition throughput). A write costs one unit per started KB, twice as much inside a transaction, and a delete
costs as much as a write. Each number is the smallest round one that takes 10,000 operations a second with every
partition at most two thirds full, because keys spread unevenly within any one second. `tests/unit/store/test_shards.py`
repeats the calculation.

A shard derived from an id must stay findable: never change these numbers without also reading the old partitions.
"""

import zlib

# An entry is below 1 KB: its Put in a transaction takes 2 units and its Delete 1. 30,000 units a second, 469 a shard.
OUTBOX = 64
# A watch is below 1 KB: its Put and its Delete are both in a transaction, 2 units each. 40,000 units, 625 a shard.
SCAN_WATCH = 64
# An entry is below 1 KB: its Put and its Delete are in transactions, 2 units each. 40,000 units, 625 a shard.
SCAN_QUEUE = 64
# The same: a scheduled scan replaces its entry by the next one.
SCAN_SCHEDULE = 64
# The same for the schedules of website audits, and for the watches of their runs.
AUDIT_SCHEDULE = 64
AUDIT_WATCH = 64
# A note is below 1 KB: its Put in a transaction takes 2 units and its Delete 1. 30,000 units, 469 a shard.
DELETIONS = 64
# A report's item in the day's partition is below 1 KB, because a longer report has its texts in a separate partition:
# its Put in a transaction takes 2 units. 20,000 units a second, 625 a shard. A day is read by a query for each.
FEEDBACK = 32
# Copies of the switch; each new report reads one copy, consistently: 1 read unit. 10,000 units, 1,250 a copy.
FEEDBACK_INTAKE = 8
# An entry is below 1 KB: its Put in a transaction takes 2 units. 20,000 units a second, 313 a shard.
LATEST_SCANS = 64
# An entry is below 1 KB: its Put in a transaction takes 2 units, and its Delete 1. 30,000 units a second, 469 a shard.
ADVISORIES = 64
# An entry is below 1 KB: its Put and its Delete in transactions take 2 units each. 40,000 units a second, 625 a shard.
SNOOZES = 64


def shard_of(text: str, shards: int) -> int:
    """Returns the shard of a text, the same in every process and release."""
    return zlib.crc32(text.encode()) % shards

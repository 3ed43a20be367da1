"""Two partitions in place of the 64 of each sharded collection, so that a sweep in a test queries a few partitions.

Sweeps read every partition, also empty ones, which took most of the time of the tests that sweep. Two are enough to
show that all are read. `tests/unit/store/test_shards.py` checks the real numbers.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controlplane.platform.table import keys, shards, table
from controlplane.platform.table.keys import findings, operations

_FEW = 2


@contextmanager
def few_shards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [it for it in vars(keys) if it.endswith("_PKS")]:
            fewer: tuple[str, ...] = getattr(keys, name)[:_FEW]
            for module in (keys, findings, operations, table):
                if hasattr(module, name):
                    patch.setattr(module, name, fewer)
        patch.setattr(shards, "ENTRIES", _FEW)
        yield

"""The figures of the load test and of the soak test, from what was measured."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import NamedTuple

from benchmarks.report import table

# Differences up to this are the allocator's, not growth.
_NOISE_MEGABYTES = 1.0


class Sample(NamedTuple):
    megabytes: float
    connections: int


def percentile(times: Counter[float], percent: float) -> float:
    """Returns the latency that `percent` of the requests don't exceed."""
    least = times.total() * percent / 100
    counted = 0
    for took in sorted(times):
        counted += times[took]
        if counted >= least:
            return took
    return 0.0


def growth(samples: list[Sample], before: Counter[tuple[str, bool]], after: Counter[tuple[str, bool]]) -> str:
    """Compares the first third of the samples with the last, and the table before with the table after."""
    third = max(1, len(samples) // 3)
    rows = []
    for name, noise in (("megabytes", _NOISE_MEGABYTES), ("connections", 0.0)):
        first, last = (
            statistics.median(getattr(sample, name) for sample in part) for part in (samples[:third], samples[-third:])
        )
        rows.append((name, float(first), float(last), "flat" if last - first <= noise else "grows"))
    for expires in (False, True):
        first, last = (sum(count for (_, it), count in kinds.items() if it is expires) for kinds in (before, after))
        verdict = ("flat" if last <= first else "grows") if not expires else ""
        rows.append(("items that expire" if expires else "other items", float(first), float(last), verdict))
    grown = [(kind, after[kind] - before[kind]) for kind in sorted(after) if after[kind] != before[kind]]
    text = table(rows, ("", "first third", "last third", ""))
    return (
        f"{text}\n\n{table([(k, 'expires' if e else 'stays', n) for (k, e), n in grown], ('kind', '', 'more items'))}"
    )

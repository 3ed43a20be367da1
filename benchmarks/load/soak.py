"""Watches a server under constant load: its memory, its connections, and the items in the table."""

from __future__ import annotations

import re
import statistics
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks.load.stack import Side, stored_items
from benchmarks.report import table
from controlplane.core import clock
from controlplane.store.cleanup import SETTLED_AFTER_SECONDS
from sweeper.service import sweep

CALLERS = 4
_SECONDS_BETWEEN_SAMPLES = 5
# Samples before this don't count: the first requests fill caches.
_WARM_UP_SECONDS = 60
# Differences up to this are the allocator's, not growth.
_NOISE_MEGABYTES = 1.0


class Sample(NamedTuple):
    megabytes: float
    connections: int


def watch(side: Side, callers: subprocess.Popen[bytes]) -> str:
    """Samples until the callers are done. Returns the report."""
    before = stored_items()
    begun = time.monotonic()
    samples: list[Sample] = []
    while callers.poll() is None:
        time.sleep(_SECONDS_BETWEEN_SAMPLES)
        if time.monotonic() - begun > _WARM_UP_SECONDS:
            samples.append(_sample(side.process.pid))
    _sweep()
    return report(samples, _kinds(before), _kinds(stored_items()))


def _sweep() -> None:
    """Finishes the deletions, as the scheduled function does, once late writes are no longer possible."""
    sweep()
    clock.source = lambda: time.time() + SETTLED_AFTER_SECONDS
    sweep()


def _sample(process: int) -> Sample:
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s*(\d+)", status)
    return Sample(
        int(found[1]) / 1024 if found else 0.0, sum(map(_is_connection, Path(f"/proc/{process}/fd").iterdir()))
    )


def _is_connection(descriptor: Path) -> bool:
    try:
        return str(descriptor.readlink()).startswith("socket:")
    except FileNotFoundError:  # closed in the meantime
        return False


def _kinds(items: list[dict[str, dict[str, str]]]) -> Counter[tuple[str, bool]]:
    """Returns the number of items by the first words of their keys, and by whether they expire."""
    return Counter((f"{_word(item['pk'])}/{_word(item['sk'])}", "expiresAt" in item) for item in items)


def _word(key: dict[str, str]) -> str:
    return re.split("[#_]", key["S"])[0]


def report(samples: list[Sample], before: Counter[tuple[str, bool]], after: Counter[tuple[str, bool]]) -> str:
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

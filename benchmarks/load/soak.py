"""Watches a server under constant load: its memory, its connections, and the items in the table."""

from __future__ import annotations

import logging
import re
import subprocess
import time
from collections import Counter
from pathlib import Path

from benchmarks.load.figures import Sample, growth
from benchmarks.load.stack import Side, stored_items
from controlplane.core import clock
from controlplane.core.observability import logger
from controlplane.store.cleanup import SETTLED_AFTER_SECONDS
from sweeper.service import sweep

CALLERS = 4
_SECONDS_BETWEEN_SAMPLES = 5
# Samples before this don't count: the first requests fill caches.
_WARM_UP_SECONDS = 60


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
    return growth(samples, _kinds(before), _kinds(stored_items()))


def _sweep() -> None:
    """Finishes the deletions, as the scheduled function does, once late writes are no longer possible."""
    # What it also does needs queues, which the stack under load doesn't have.
    logger.setLevel(logging.CRITICAL)
    sweep()
    clock.source = lambda: time.time() + SETTLED_AFTER_SECONDS
    while sweep()["FinishedDeletions"]:
        pass


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
    """Returns the first word of a key, or a placeholder for an ID or a time."""
    word = re.split("[#_]", key["S"])[0]
    return word if word.isupper() and word.isalpha() else "…"

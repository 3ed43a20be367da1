"""`python -m benchmarks`: measures, prints a report, and always exits with 0. A benchmark isn't a test.

Ratios, never absolute times: everything that is compared runs in the same session, interleaved.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import cold, size, trips, warm
from benchmarks.bench import Bench
from benchmarks.goals import Figure
from benchmarks.machine import EngineMissing, cores
from benchmarks.process import TargetFailed
from benchmarks.report import by_goal

SECTIONS: dict[str, Callable[[Bench], tuple[list[Figure], str]]] = {
    "size": size.measure,
    "trips": trips.measure,
    "cold": cold.measure,
    "warm": warm.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, help="one section instead of all")
    options = parser.parse_args()
    os.sched_setaffinity(0, cores()[0])
    figures: list[Figure] = []
    details: list[str] = []
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        bench = Bench.prepare(Path(folder))
        print(f"package: {bench.ours.origin}")
        for name, measure in SECTIONS.items():
            if options.only in (None, name):
                found, detail = _measured(name, measure, bench)
                figures += found
                details.append(detail)
    print("\n" + "\n\n".join([*filter(None, details), by_goal(figures)]))


def _measured(
    name: str, measure: Callable[[Bench], tuple[list[Figure], str]], bench: Bench
) -> tuple[list[Figure], str]:
    """Returns a section's result, or the reason it can't be measured here. The other sections continue."""
    begun = time.monotonic()
    try:
        found = measure(bench)
    except EngineMissing as missing:
        return [], f"{name}: not measured. {missing}"
    except TargetFailed as failure:
        return [], f"{name}: not measured. {failure}"
    print(f"measured {name} in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return found


if __name__ == "__main__":
    main()

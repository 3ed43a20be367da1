"""Measures the deployed package: its size compared with the naive peer's, and its modules without valid bytecode."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.goals import UNPACKED_NAIVE, ZIPPED_NAIVE, Figure
from benchmarks.package import own_libraries
from scripts import artifacts


def measure(bench: Bench) -> tuple[list[Figure], str]:
    """Figures of goals 2 and 8. The package is the layer and every function that needs no more than it.

    The peer's is its libraries. A function with libraries of its own (the analysis, signing in) does what it does not.
    """
    missing = sum(len(artifacts.modules_without_bytecode(folder)) for folder in bench.ours.all_folders())
    plain = [folder for group, folder in bench.ours.functions.items() if not own_libraries(group)]
    figures = [Figure("2", "all functions and the layer", missing, "modules", 0)]
    for subject, weigh, bound in (
        ("unpacked", artifacts.size_bytes, UNPACKED_NAIVE),
        ("zipped", artifacts.zipped_size_bytes, ZIPPED_NAIVE),
    ):
        own, peer = sum(map(weigh, [*plain, bench.ours.layer])), weigh(bench.naive_libraries)
        note = f"{own / 2**20:.1f} of {peer / 2**20:.1f} MiB"
        figures.append(Figure("8", subject, own / peer, "x naive", bound, note))
    return figures, ""

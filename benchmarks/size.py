"""Measures the deployed package: its size compared with the naive peer's, and its modules without valid bytecode."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.goals import UNPACKED_NAIVE, ZIPPED_NAIVE, Figure
from benchmarks.package import has_own_libraries, weigh
from scripts import artifacts


def measure(bench: Bench) -> tuple[list[Figure], str]:
    """Figures of goals 2 and 8. The package is the layer and every function that needs no more than it.

    The peer's is its libraries. A function with libraries of its own (the analysis, signing in) does what it does not.
    """
    missing = sum(len(artifacts.modules_without_bytecode(folder)) for folder in bench.ours.all_folders())
    plain = [folder for group, folder in bench.ours.functions.items() if not has_own_libraries(group)]
    own, peer = weigh([*plain, bench.ours.layer]), weigh([bench.naive_libraries])
    figures = [
        Figure("2", "all functions and the layer", missing, "modules", 0),
        Figure(
            "8", "unpacked", own.unpacked / peer.unpacked, "x naive", UNPACKED_NAIVE, _mib(own.unpacked, peer.unpacked)
        ),
        Figure("8", "zipped", own.zipped / peer.zipped, "x naive", ZIPPED_NAIVE, _mib(own.zipped, peer.zipped)),
    ]
    return figures, ""


def _mib(own: int, peer: int) -> str:
    return f"{own / 2**20:.1f} of {peer / 2**20:.1f} MiB"

"""What is deployed: its weight against the naive peer's, and its modules without lasting bytecode."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.goals import UNPACKED_NAIVE, ZIPPED_NAIVE, Figure
from benchmarks.package import weigh
from scripts import artifacts


def measure(bench: Bench) -> tuple[list[Figure], str]:
    """Figures of goals 2 and 8; the package is every function and the layer, the peer's its libraries."""
    folders = bench.ours.all_folders()
    own, peer = weigh(folders), weigh([bench.naive_libraries])
    missing = sum(len(artifacts.modules_without_bytecode(folder)) for folder in folders)
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

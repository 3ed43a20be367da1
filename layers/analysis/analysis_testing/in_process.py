"""Runs the analysis in the test's process: a rule's findings don't depend on where it runs."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import openassent_analysis
from openassent_analysis import Analysis, Limits
from openassent_analysis.examine import examine
from openassent_analysis.files import Skipped
from openassent_analysis.inventory.listing import Listing
from openassent_analysis.inventory.stocktaking import Inventory, take_inventory
from openassent_analysis.report import Answer, Examine, Request


def in_process(limits: Limits) -> Examine:
    def examine_all(requests: Iterator[Request], _: float) -> Iterator[Answer]:
        for request in requests:
            try:
                yield request, examine(*request, limits)
            except Skipped as skipped:
                yield request, skipped

    return examine_all


def analyze_files(contents: Iterable[tuple[str, bytes]], limits: Limits | None = None) -> Analysis:
    limits = limits or Limits()
    # Some files are read again.
    contents = list(contents) if isinstance(contents, Iterator) else contents
    return openassent_analysis.analyze_files(contents, in_process(limits), limits)


def analyze_folder(root: Path, limits: Limits | None = None, repository: str = "") -> Analysis:
    limits = limits or Limits()
    return openassent_analysis.analyze_folder(root, in_process(limits), limits, repository)


def inventory_of(files: Mapping[str, str | bytes]) -> Inventory:
    """Returns the inventory of a repository, with its manifests parsed in the test's process."""
    listing = Listing()
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            content = text.encode() if isinstance(text, str) else text
            if listing.take(path, len(content)) is None:
                target = Path(folder, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        return take_inventory(listing, len(files), Path(folder), in_process(Limits()))

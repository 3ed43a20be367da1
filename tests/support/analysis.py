"""Runs the analysis in the test's process: a rule's findings don't depend on where it runs."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from scan_execution import analysis
from scan_execution.analysis import Analysis, Limits
from scan_execution.analysis.examine import examine
from scan_execution.analysis.files import Skipped
from scan_execution.analysis.report import Answer, Examine, Request


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
    return analysis.analyze_files(contents, in_process(limits), limits)


def analyze_folder(root: Path, limits: Limits | None = None, repository: str = "") -> Analysis:
    limits = limits or Limits()
    return analysis.analyze_folder(root, in_process(limits), limits, repository)

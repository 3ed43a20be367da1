"""Runs the analysis in the test's process: a rule's findings don't depend on where it runs."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import openassent_analysis
from openassent_analysis import Analysis, Limits
from openassent_analysis.examine import examine
from openassent_analysis.files import Skipped
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

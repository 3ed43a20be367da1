"""The result of a scan: its findings, its loads, and the files that were read and skipped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from openassent_analysis.findings import Finding
from openassent_analysis.kinds import Kind

# Limits of the whole scan, for which files aren't read.
ENDS: Final = frozenset({"too many files", "too many bytes", "out of time"})


@dataclass
class Loads:
    """The files that load a vendor, and some hosts.

    places: whether each file waits for consent, by path. None if the analysis can't tell.
    """

    places: dict[str, bool | None] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)

    @property
    def files(self) -> int:
        return len(self.places)

    @property
    def ungated(self) -> int:
        """The number of files that surely don't wait for consent."""
        return [*self.places.values()].count(False)


@dataclass
class Analysis:
    """The result of a scan."""

    # Most urgent first.
    findings: list[Finding] = field(default_factory=list)
    files_seen: int = 0
    files_analyzed: int = 0
    bytes_read: int = 0
    lines: int = 0
    # Skipped files by reason; a skipped folder counts as one. Files without a known language aren't counted.
    skipped: Counter[str] = field(default_factory=Counter)
    skipped_examples: dict[str, list[str]] = field(default_factory=dict)
    # By kind of code, except files that the project's people didn't write.
    kinds: dict[str, Kind] = field(default_factory=dict)
    # By vendor id.
    loads: dict[str, Loads] = field(default_factory=dict)
    # True if findings were dropped at a limit.
    truncated: bool = False
    # Paths of the files to analyze, including those that were skipped for their content or at a limit.
    paths: list[str] = field(default_factory=list)
    # Those that weren't analyzed, or whose findings were dropped: they may have more findings.
    uncertain: set[str] = field(default_factory=set)
    # True if a file takes part in asking for consent.
    asks_for_consent: bool = False

    # True if files of the project were left out before the analysis.
    lacks_files: bool = False

    @property
    def incomplete(self) -> bool:
        """True if files weren't read because of a limit of the whole scan."""
        return self.lacks_files or not ENDS.isdisjoint(self.skipped)

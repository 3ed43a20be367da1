"""The results of the analysis: findings and their order."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NamedTuple

from openassent_analysis.kinds import Kind
from openassent_analysis.places import Place
from openassent_analysis.selection import EVERYTHING, Selection

CATEGORIES: Final = ("trackers", "cookies", "banner", "personal-data", "outdated")
SEVERITIES: Final = ("critical", "high", "medium", "low")
# What suppresses a finding: a comment in the code, a rule that is off, or an accepted vendor.
COMMENT: Final = "comment"
RULE: Final = "rule"
VENDOR: Final = "vendor"
PRIORITIES: Final = ("P0", "P1", "P2", "P3")
CONFIDENCES: Final = ("high", "medium", "low")

# Breaks ties between equally urgent findings.
_CATEGORY_ORDER: Final = ("personal-data", "trackers", "banner", "cookies", "outdated")


@dataclass(frozen=True, slots=True)
class Location:
    """A range in a file. Lines and columns start at 1; the end column is exclusive."""

    path: str
    start_line: int
    end_line: int
    start_column: int
    end_column: int
    # The lines, truncated, without common indentation, and with everything that looks like a secret masked.
    snippet: str
    # Likewise, with the lines around them, each cut. Not for JSON.
    around: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    rule_id: str
    title: str
    description: str
    category: str
    severity: str
    priority: str
    location: Location
    remediation: str
    references: tuple[str, ...]
    fingerprint: str
    # The digest of rule and code without the path, and the number of earlier findings in the file with the same one.
    content: str
    ordinal: int
    # The digest of the parts that stay when the code is edited. Empty if edited code is another finding.
    shape: str
    # The catalogue's vendors that the finding is about.
    vendor_ids: tuple[str, ...] = ()
    # How sure the analysis is that the code runs, and runs without consent.
    confidence: str = "high"
    # What a fix edits. Not for JSON.
    places: tuple[Place, ...] = ()

    @property
    def vendor_id(self) -> str | None:
        """The vendor, if the finding is about a single one."""
        return self.vendor_ids[0] if len(self.vendor_ids) == 1 else None

    def as_dict(self) -> dict[str, Any]:
        """Returns the finding for JSON, with keys in camelCase."""
        return {_camel(key): value for key, value in asdict(self).items() if key not in {"location", "places"}} | {
            "references": list(self.references),
            "vendorIds": list(self.vendor_ids),
            "location": {_camel(key): value for key, value in asdict(self.location).items() if key != "around"},
        }


class Suppression(NamedTuple):
    """The reason why a finding isn't reported. kind: COMMENT, RULE, or VENDOR."""

    kind: Literal["comment", "rule", "vendor"]
    reason: str


class Suppressed(NamedTuple):
    finding: Finding
    suppression: Suppression


def priority_of(severity: str, confidence: str) -> str:
    """Returns the severity as a priority, one step lower if the finding is uncertain."""
    step = SEVERITIES.index(severity) + (confidence == "low")
    return PRIORITIES[min(step, len(PRIORITIES) - 1)]


def urgency(finding: Finding) -> tuple[int, int, int, int, str, int, str]:
    """Returns a sort key: most urgent first. The order is total, so the same tree always gives the same result."""
    return (
        PRIORITIES.index(finding.priority),
        CONFIDENCES.index(finding.confidence),
        SEVERITIES.index(finding.severity),
        _CATEGORY_ORDER.index(finding.category),
        finding.location.path,
        finding.location.start_line,
        finding.fingerprint,
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


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


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the project's people should know about the scan: where, and a sentence."""

    path: str
    line: int
    text: str


@dataclass
class Analysis:
    """The result of a scan."""

    # Most urgent first.
    findings: list[Finding] = field(default_factory=list)
    # Those that a comment or the project's settings suppress, most urgent first.
    suppressed: list[Suppressed] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    selection: Selection = EVERYTHING
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
    # How the project's files set a consent library up, see `setups`.
    setups: set[str] = field(default_factory=set)
    # True if files of the project were left out before the analysis.
    lacks_files: bool = False

    @property
    def incomplete(self) -> bool:
        """True if files weren't read because of a limit of the whole scan."""
        return self.lacks_files or not ENDS.isdisjoint(self.skipped)

"""What the analysis answers: findings, and their order."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

CATEGORIES: Final = ("trackers", "cookies", "secrets", "banner", "personal-data", "outdated")
SEVERITIES: Final = ("critical", "high", "medium", "low")
PRIORITIES: Final = ("P0", "P1", "P2", "P3")

# Of two equally urgent findings: first what leaks already, last what is only old.
_CATEGORY_ORDER: Final = ("secrets", "personal-data", "trackers", "banner", "cookies", "outdated")


@dataclass(frozen=True, slots=True)
class Location:
    """Lines and columns count from 1; the end column stands behind the last character."""

    path: str
    start_line: int
    end_line: int
    start_column: int
    end_column: int
    # The lines, without their common indentation, bounded, and with whatever looks like a secret masked.
    snippet: str


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
    # The vendor of the catalogue that the finding is about, where there is one.
    vendor_id: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The finding as on the wire, in camelCase."""
        return {_camel(key): value for key, value in asdict(self).items() if key != "location"} | {
            "references": list(self.references),
            "location": {_camel(key): value for key, value in asdict(self.location).items()},
        }


def urgency(finding: Finding) -> tuple[int, int, int, str, int, str]:
    """Sorts the most urgent finding first; total, so that the same tree always gives the same order."""
    return (
        PRIORITIES.index(finding.priority),
        SEVERITIES.index(finding.severity),
        _CATEGORY_ORDER.index(finding.category),
        finding.location.path,
        finding.location.start_line,
        finding.fingerprint,
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)

"""`python -m benchmarks.accuracy FOLDER VERDICTS`: compares the analysis of real repositories with verdicts on them.

FOLDER contains checked-out repositories, each at OWNER/NAME or OWNER+NAME. VERDICTS is a tab-separated file with the
columns repository, commit, path, vendor, and verdict, one row per file and vendor; `benchmarks/verdicts/README.md`
explains the verdicts. Repositories that aren't in the folder are left out.

Recall is the part of the ungated loads that the analysis reports. Precision is the part of its findings, of any kind,
that are right. A finding that has no verdict is listed, and counts in neither.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.report import table
from openassent_analysis import Finding, Limits, analyze_folder
from openassent_analysis.catalogue import catalogue
from openassent_analysis.findings import CONFIDENCES
from openassent_analysis.sandbox import Sandbox

# Verdicts on loads of a vendor: the analysis should report the first, and must not report the last two.
UNGATED: Final = "ungated"
DEAD: Final = "dead"
WRONG: Final = frozenset({"gated", DEAD, "wrong"})
# Reporting them is neither right nor wrong.
NEUTRAL: Final = frozenset({"cookieless", "same", "unclear"})
# Verdicts on findings of other kinds: the vendor's column has `rule:ID`.
RIGHT: Final = "right"
CLEAN: Final = "clean"
VERDICTS: Final = frozenset({UNGATED, RIGHT, CLEAN, *WRONG, *NEUTRAL})


class InvalidVerdicts(Exception):
    """A row can't be understood. The argument names it."""


class Place(NamedTuple):
    repository: str
    path: str
    # A vendor's id, the host of a vendor that the catalog doesn't contain, or `rule:ID`.
    subject: str


@dataclass
class Result:
    """Places by outcome, for the findings with one of the given levels of confidence."""

    found: set[Place] = field(default_factory=set)
    missed: set[Place] = field(default_factory=set)
    right: set[Place] = field(default_factory=set)
    wrong: set[Place] = field(default_factory=set)
    unjudged: set[Place] = field(default_factory=set)

    @property
    def recall(self) -> str:
        return _part(len(self.found), len(self.found) + len(self.missed))

    @property
    def precision(self) -> str:
        return _part(len(self.right), len(self.right) + len(self.wrong))


def _part(count: int, total: int) -> str:
    return f"{count} of {total}" + (f" ({count / total:.0%})" if total else "")


def read_verdicts(path: Path) -> dict[str, dict[Place, str]]:
    """Returns the verdicts by repository. Raises InvalidVerdicts."""
    found: dict[str, dict[Place, str]] = defaultdict(dict)
    with path.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file, delimiter="\t"), 2):
            if row.get("verdict") not in VERDICTS or not row.get("repository"):
                raise InvalidVerdicts(f"{path}:{number}: verdict is one of {', '.join(sorted(VERDICTS))}")
            places = found[row["repository"]]
            if row["verdict"] != CLEAN:
                places[Place(row["repository"], row["path"], subject_of(row["vendor"]))] = row["verdict"]
    return dict(found)


def subject_of(written: str) -> str:
    """Returns the vendor's id if the text is one or a host of a known vendor, and else the text itself."""
    host, slash, path = written.partition("/")
    vendor = catalogue().vendors.get(written) or catalogue().vendor_of(host, slash + path)
    return vendor.id if vendor else written


def places_of(repository: str, finding: Finding) -> Iterator[Place]:
    """Yields the finding's claims: one for each vendor, if it is about loading vendors."""
    if finding.category == "trackers":
        for vendor_id in finding.vendor_ids:
            yield Place(repository, finding.location.path, vendor_id)
        if finding.vendor_ids:
            return
    yield Place(repository, finding.location.path, f"rule:{finding.rule_id}")


def compare(
    verdicts: Mapping[Place, str], repository: str, findings: Iterable[Finding], confidence: frozenset[str]
) -> Result:
    """Compares the findings in one repository with the verdicts on it."""
    result = Result()
    for finding in findings:
        if finding.confidence not in confidence:
            continue
        for claimed in places_of(repository, finding):
            place = claimed if claimed in verdicts else _by_host(verdicts, finding) or claimed
            verdict = verdicts.get(place)
            if verdict == DEAD and finding.confidence == "low":
                continue  # it says that nothing was found that runs the code
            if verdict in {UNGATED, RIGHT}:
                result.right.add(place)
            elif verdict in WRONG:
                result.wrong.add(place)
            elif verdict is None:
                result.unjudged.add(place)
    expected = {place for place, verdict in verdicts.items() if verdict == UNGATED}
    result.found, result.missed = expected & result.right, expected - result.right
    return result


def _by_host(verdicts: Iterable[Place], finding: Finding) -> Place | None:
    """Returns the place in the finding's file whose host the title names: an unknown vendor is known only by that."""
    return next(
        (
            place for place in verdicts
            if place.path == finding.location.path and "." in place.subject and place.subject in finding.title
        ),
        None,
    )  # fmt: skip


def analyze(folder: Path, repository: str) -> list[Finding]:
    limits = Limits(max_seconds=600)
    with Sandbox(limits) as sandbox:
        return analyze_folder(folder, sandbox.examine, limits, repository).findings


def checkouts(folder: Path, repositories: Iterable[str]) -> Iterator[tuple[str, Path]]:
    for repository in sorted(repositories):
        for name in (repository, repository.replace("/", "+")):
            if (folder / name).is_dir():
                yield repository, folder / name
                break


# The rows with a single level are the calibration: how often findings with it are right.
LEVELS: Final = {
    "all findings": frozenset({"high", "medium", "low"}),
    "without low confidence": frozenset({"high", "medium"}),
    **{f"{level} confidence": frozenset({level}) for level in CONFIDENCES},
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("--list", action="store_true", help="also list what was missed, wrong, or not judged")
    options = parser.parse_args()
    verdicts = read_verdicts(options.verdicts)
    totals = {level: Result() for level in LEVELS}
    analyzed, with_loads = 0, 0
    for repository, folder in checkouts(options.folder, verdicts):
        findings = analyze(folder, repository)
        analyzed += 1
        with_loads += UNGATED in verdicts[repository].values()
        for level, confidence in LEVELS.items():
            result = compare(verdicts[repository], repository, findings, confidence)
            for name, places in vars(result).items():
                getattr(totals[level], name).update(places)
    if not analyzed:
        parser.error(f"{options.folder} contains none of the repositories")
    sys.stdout.write(_report(totals, analyzed, with_loads, listed=options.list))
    return 0


def _report(totals: Mapping[str, Result], analyzed: int, with_loads: int, *, listed: bool) -> str:
    lines = [f"{analyzed} repositories, {with_loads} with ungated loads", ""]
    lines.append(
        table(
            ((level, it.recall, it.precision, len(it.unjudged)) for level, it in totals.items()),
            ("", "recall", "precision", "not judged"),
        )
    )
    everything = totals["all findings"]
    for name in ("missed", "wrong", "unjudged") if listed else ():
        places = sorted(getattr(everything, name))
        lines += ["", f"{name}: {len(places)}", *("\t".join(place) for place in places)]
    causes = Counter(place.subject for place in everything.missed)
    lines += ["", "missed vendors: " + (", ".join(f"{it} {n}" for it, n in causes.most_common(10)) or "none")]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

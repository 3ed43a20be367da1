"""Scans a folder on this machine with the service's own analysis. Nothing leaves the machine."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from openassent_analysis import working_tree
from openassent_analysis.findings import Finding, Note
from openassent_analysis.project_file import InvalidProjectFile
from openassent_analysis.rules import rules, rules_version
from openassent_analysis.sandbox import SandboxUnavailable
from openassent_analysis.selection import EVERYTHING, InvalidGlob, Selection
from openassent_analysis.working_tree import EarlierFinding, ReportedFinding, compare, read_baseline
from openassent_cli import git
from openassent_cli.problems import Exit, Problem


@dataclass(frozen=True)
class LocalReport:
    """The findings of a folder, the most urgent first. Their paths are relative to it.

    baseline_count: how many others are in the baseline, or None without one. skipped: numbers of files by reason, and
    some of their paths. suppressed: findings that a comment or the project's settings suppress. notes: comments that
    have no effect. scanned_at: when the scan began, in nanoseconds of the clock. folder: where it is, without links.
    prefix: the folder's path in its working tree, empty or with a slash at the end.
    """

    findings: tuple[ReportedFinding, ...]
    analyzed: int
    skipped: Mapping[str, int]
    skipped_examples: Mapping[str, Sequence[str]]
    folder: Path
    scanned_at: int
    prefix: str = ""
    baseline_count: int | None = None
    suppressed: tuple[ReportedFinding, ...] = ()
    notes: tuple[Note, ...] = ()

    def path_in_tree(self, path: str) -> str:
        return self.prefix + path

    def as_json(self) -> dict[str, Any]:
        return {
            "rulesVersion": rules_version(),
            "analyzedFiles": self.analyzed,
            "skipped": dict(self.skipped),
            "skippedExamples": dict(self.skipped_examples),
            "baselineCount": self.baseline_count,
            "suppressed": [it.as_dict() for it in self.suppressed],
            "notes": [asdict(note) for note in self.notes],
            "findings": [finding.as_dict() for finding in self.findings],
        }

    @property
    def plain_findings(self) -> list[Finding]:
        return [it.finding for it in self.findings]

    def at_or_above(self, priority: str) -> list[ReportedFinding]:
        """Returns the findings that are at least as urgent as the priority."""
        return [it for it in self.findings if it.finding.priority <= priority]


def selection_of(
    exclude: Sequence[str] | None, include: Sequence[str] | None, only_rules: Sequence[str] | None
) -> Selection:
    """Returns the selection of files and rules that the options make. Raises Problem."""
    unknown = {*(only_rules or ())} - {rule.id for rule in rules()}
    if unknown:
        raise Problem(
            f"There is no rule {min(unknown)}.", "The page /docs/rules of the service lists them.", Exit.USAGE
        )
    try:
        return EVERYTHING.narrowed(exclude or (), include or (), only_rules or ())
    except InvalidGlob as error:
        raise Problem(f"A glob isn't valid: {error}.", code=Exit.USAGE) from None


def scan_folder(
    folder: Path,
    *,
    selection: Selection = EVERYTHING,
    baseline: Sequence[EarlierFinding] | None = None,
    changed_since: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> LocalReport:
    """Scans a folder. Raises Problem.

    selection: globs and rules besides those of the repository's `.assent.yml`.
    baseline: findings to leave out, even if their files were renamed. changed_since: a commit; findings in files that
    haven't changed since this branch left it are left out too. All files are read in any case, because a file's consent
    check may be in another one. on_progress: gets the numbers of analyzed files and of all files.
    """
    if not folder.is_dir():
        raise Problem(f"{folder} isn't a folder.", code=Exit.USAGE)
    folder, scanned_at = folder.resolve(), time.time_ns()
    only = git.changed_since(folder, changed_since) if changed_since else None
    top = git.root(folder)
    top = top.resolve() if top else folder
    try:
        scan = working_tree.scan(folder, top=top, selection=selection, only=only, on_progress=on_progress)
    except SandboxUnavailable as error:
        raise Problem(f"The analysis couldn't be started: {error}") from None
    except InvalidProjectFile as error:
        raise Problem(str(error), code=Exit.USAGE) from None
    compared = compare(scan, baseline or ())
    return LocalReport(
        findings=compared.new,
        analyzed=scan.analysis.files_analyzed,
        skipped=scan.analysis.skipped,
        skipped_examples=scan.analysis.skipped_examples,
        folder=folder,
        scanned_at=scanned_at,
        suppressed=scan.suppressed,
        notes=tuple(scan.analysis.notes),
        prefix=scan.analysis.selection.prefix,
        baseline_count=None if baseline is None else len(compared.known),
    )


def read_report(file: Path) -> list[EarlierFinding]:
    """Returns the findings of an earlier scan, from its report as JSON. Raises Problem."""
    try:
        return read_baseline(json.loads(file.read_text(encoding="utf-8"))["findings"])
    except OSError as error:
        raise Problem(f"{file} can't be read: {error.strerror}.", code=Exit.USAGE) from None
    except (ValueError, KeyError, TypeError, RecursionError):  # InvalidBaseline is a ValueError
        advice = "Write one with `assent scan local --format json > FILE`."
        raise Problem(f"{file} isn't a report of a scan.", advice, Exit.USAGE) from None

"""Scans a folder on this machine, offline, with the analysis that the service runs.

    for reported in scan(Path(".")).findings:
        print(reported.finding.title, reported.finding.location.path)

The files are parsed in the same sandboxed processes. Outside of Linux, these aren't confined.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from openassent_analysis import git
from openassent_analysis.catalogue import catalogue, own_vendors
from openassent_analysis.files import Listed, Skipped, read, walk
from openassent_analysis.findings import Analysis, Finding, Suppression
from openassent_analysis.fixes import Fix, Project, fix_for
from openassent_analysis.identities import covers, dependency, identify
from openassent_analysis.inventory.listing import Listing
from openassent_analysis.inventory.stocktaking import Inventory, take_inventory, with_loads
from openassent_analysis.limits import Limits
from openassent_analysis.project_file import MAX_BYTES, InvalidProjectFile, read_project_file
from openassent_analysis.reading import COPIES, copy_data
from openassent_analysis.report import ANOTHER_LOOK, Answer, Examine, Request
from openassent_analysis.sandbox import Bounds, Sandbox
from openassent_analysis.scan import analyze_folder
from openassent_analysis.selection import EVERYTHING, PROJECT_FILE, Selection, knowing

LIMITS: Final = Limits(max_seconds=600)
# A busy machine needs longer than Lambda to start a process, and to analyze a file.
BOUNDS: Final = Bounds(start_seconds=120, wall_seconds=60)
# More processes read faster than one can hand out files.
MAX_WORKERS: Final = 8


class NamedVendor(NamedTuple):
    """A vendor: its id in the catalogue, its name, and its main domain."""

    id: str
    name: str
    domain: str


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """A finding with the other fields of a report.

    fix: None if no code fits the project. suppression: why it isn't reported, or None.
    """

    finding: Finding
    vendors: tuple[NamedVendor, ...]
    fix: Fix | None
    suppression: Suppression | None = None

    def as_dict(self) -> dict[str, Any]:
        """Returns the finding for JSON, with keys in camelCase."""
        vendors = [vendor._asdict() for vendor in self.vendors]
        suppression = {"suppression": self.suppression._asdict()} if self.suppression else {}
        return self.finding.as_dict() | {"vendors": vendors, "fix": self.fix and self.fix.as_dict()} | suppression


@dataclass(frozen=True, slots=True)
class WorkingTreeScan:
    """The result of a scan.

    findings: those to report, most urgent first. suppressed: those that a comment or the project's settings suppress.
    analysis: how many files were analyzed or skipped and why, and all findings.
    """

    findings: tuple[ReportedFinding, ...]
    analysis: Analysis
    inventory: Inventory
    suppressed: tuple[ReportedFinding, ...] = ()


def scan(
    root: Path,
    *,
    top: Path | None = None,
    selection: Selection = EVERYTHING,
    only: Collection[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
    limits: Limits = LIMITS,
) -> WorkingTreeScan:
    """Returns the findings in a folder.

    In a git working tree, reads the files that git tracks or would add. Elsewhere, reads all files except those in
    folders of dependencies and build output. Follows no links.

    top: the root of the repository that the folder is in, by default the folder itself. Its `.assent.yml` decides what
    is read and reported. selection: further globs and rules. only: the files to report findings in, as paths relative
    to the folder, with forward slashes. The other files are read, too, because they decide whether code waits for
    consent. on_progress: called with the number of analyzed files and the number of all files to analyze. workers: the
    maximum number of processes; by default one per core, at most MAX_WORKERS.

    Raises NotADirectoryError, SandboxUnavailable, InvalidProjectFile.
    """
    if not root.is_dir():
        raise NotADirectoryError(root)
    _compile()
    with Sandbox(limits, BOUNDS, workers=workers or MAX_WORKERS) as sandbox:
        selection = _selection_in(root, top or root, selection, sandbox.examine)
        listed = selection.with_conventions(list_files(root, selection))
        listing, total = Listing(selection), 0
        for path, place, reason in listed:
            if place is not None:
                listing.take(path, _size(place))
                total += reason is None and selection.reads(path)
        examine = _counting(sandbox.examine, total, on_progress) if on_progress else sandbox.examine
        with own_vendors(selection.vendors):
            inventory = take_inventory(listing, len(listed), root, knowing(sandbox.examine, selection.vendors))
            analysis = analyze_folder(root, examine, limits, git.repository_of(root), listed, selection=selection)
            inventory = with_loads(inventory, analysis.loads)
            wanted = [it for it in analysis.findings if only is None or it.location.path in only]
            project = Project.of(inventory, analysis) if wanted else None
            findings = tuple(_reported(it, project) for it in wanted)
            silent = (it for it in analysis.suppressed if only is None or it.finding.location.path in only)
            suppressed = tuple(_reported(it.finding, suppression=it.suppression) for it in silent)
    if on_progress:
        on_progress(total, total)
    return WorkingTreeScan(findings, analysis, inventory, suppressed)


def _compile() -> None:
    """Writes the bytecode and the copies of data files. The processes write neither, and not every installer does."""
    package = Path(__file__).parent
    folders = (folder for folder in os.walk(package) if not folder[0].endswith("__pycache__"))
    newest = max(Path(folder, name).stat().st_mtime for folder, _, names in folders for name in names)
    if os.access(package, os.W_OK) and not (COPIES.exists() and COPIES.stat().st_mtime > newest):
        import compileall  # noqa: PLC0415 (takes long to import, and is needed once)

        compileall.compile_dir(package, quiet=2)
        copy_data()


def _selection_in(root: Path, top: Path, further: Selection, examine: Examine) -> Selection:
    """Returns what the repository's file selects, with the further globs and rules. Raises InvalidProjectFile."""
    prefix = root.relative_to(top).as_posix()
    try:
        found = read_project_file(read(top / PROJECT_FILE, MAX_BYTES), examine)
    except Skipped as skipped:
        if str(skipped) != "unreadable" or (top / PROJECT_FILE).exists():
            raise InvalidProjectFile(f"{PROJECT_FILE} can't be read: {skipped}.") from None
        found = EVERYTHING
    found = found.narrowed(further.exclude, further.include, further.rules or ())
    return replace(found, prefix="" if prefix == "." else f"{prefix}/")


def list_files(root: Path, selection: Selection = EVERYTHING) -> Iterator[Listed]:
    """Yields the files of a folder like `files.walk`, except that git selects them in a working tree."""
    tracked = git.list_files(root)
    if tracked is None:
        yield from walk(root, selection.reason_to_skip_folder)
        return
    for name in tracked:
        path, place = name.encode(errors="replace").decode(), root / name
        try:
            mode = place.lstat().st_mode
        except OSError:  # deleted
            continue
        if stat.S_ISLNK(mode):
            yield path, None, "link"
        elif stat.S_ISREG(mode):
            yield path, place, None


def _size(place: os.PathLike[str]) -> int:
    try:
        return os.lstat(place).st_size
    except OSError:  # deleted since it was listed
        return 0


def _counting(examine: Examine, total: int, on_progress: Callable[[int, int], None]) -> Examine:
    """Returns `examine`, which reports each file once: not again if another look at it is needed."""
    done = 0

    def counted(requests: Iterator[Request], deadline: float) -> Iterator[Answer]:
        nonlocal done
        for answer in examine(requests, deadline):
            yield answer
            if not answer[0].language.startswith(ANOTHER_LOOK):
                done += 1
                on_progress(done, max(done, total))

    return counted


def _reported(
    finding: Finding, project: Project | None = None, suppression: Suppression | None = None
) -> ReportedFinding:
    known = [catalogue().vendors[vendor_id] for vendor_id in finding.vendor_ids]
    vendors = tuple(NamedVendor(it.id, it.name, it.domains[0].partition("/")[0]) for it in known)
    return ReportedFinding(finding, vendors, fix_for(finding, project) if project else None, suppression)


class InvalidBaseline(ValueError):
    """The findings aren't those that `ReportedFinding.as_dict` returns."""


class EarlierFinding(NamedTuple):
    """A finding of the baseline, by its identity. path: the file that it depends on, see `identities`."""

    fingerprint: str
    rule_id: str
    title: str
    content: str
    ordinal: int
    shape: str
    path: str
    place: None = None
    gone: None = None


class Comparison(NamedTuple):
    """The findings to report that are new, those that the baseline has, and those that are gone."""

    new: tuple[ReportedFinding, ...]
    known: tuple[ReportedFinding, ...]
    fixed: tuple[EarlierFinding, ...]


def read_baseline(findings: Iterable[Mapping[str, Any]]) -> list[EarlierFinding]:
    """Returns the findings of a report, given as `ReportedFinding.as_dict` returns them. Raises InvalidBaseline."""
    return [_read(finding) for finding in findings]


def _read(finding: Mapping[str, Any]) -> EarlierFinding:
    try:
        texts = [finding[name] for name in ("fingerprint", "ruleId", "title", "content", "shape")]
        path, ordinal = finding["location"]["path"], finding["ordinal"]
    except (KeyError, TypeError) as failure:
        raise InvalidBaseline(f"a finding has no {failure}") from failure
    if not all(isinstance(it, str) for it in (*texts, path)) or type(ordinal) is not int:
        raise InvalidBaseline("a finding has a value of another type")
    fingerprint, rule_id, title, content, shape = texts
    return EarlierFinding(fingerprint, rule_id, title, content, ordinal, shape, dependency(rule_id, path))


def compare(scan: WorkingTreeScan, baseline: Sequence[EarlierFinding]) -> Comparison:
    """Returns the comparison. A finding of the baseline is recognized in a renamed file and in edited code, too.

    One in a file that exists and wasn't analyzed isn't fixed.
    """
    analysis = scan.analysis
    earlier = {it.fingerprint: it for it in baseline}

    def is_gone(finding: EarlierFinding) -> bool:
        asks = analysis.asks_for_consent
        return covers(finding.path, analysis.uncertain, asks_for_consent=asks, selection=analysis.selection)

    identities = identify(analysis.findings, earlier, is_gone)
    found = set(identities.values())
    new = tuple(it for it in scan.findings if identities[it.finding.fingerprint] not in earlier)
    known = tuple(it for it in scan.findings if identities[it.finding.fingerprint] in earlier)
    fixed = tuple(it for it in earlier.values() if it.fingerprint not in found and is_gone(it))
    return Comparison(new, known, fixed)

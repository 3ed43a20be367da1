"""The rules of `scan_execution`: the stages of a scan, which findings are stored, and which of them are visible.

Clients see each stage: it is reported when it starts, advances, and is completed. Every report is a write under the
lease, so a worker that has lost it stops at its next report. A scan of a repository that is larger than a scan reads
says what it left out.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Final

import openassent_analysis
from controlplane.code_host import repositories
from controlplane.code_host.github.client import CodeHost, connect
from controlplane.code_host.github.errors import TarballTooLarge
from controlplane.code_host.items import RepositoryItem
from controlplane.platform.core import clock
from controlplane.platform.core.errors import known
from controlplane.platform.core.ids import ScanId
from controlplane.platform.core.settings import settings
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import ExecuteScan, PublishScan
from controlplane.platform.table.leases import Lease
from controlplane.platform.table.table import Put
from controlplane.scans import execution, reads, unlocks
from controlplane.scans.execution import PermanentFailure, code_host_errors, run_attempt
from controlplane.scans.items import Coverage, CoveredKind, Failure, ScanItem, Stage, UnknownScan
from controlplane.scans.reads import stored_leg
from openassent_analysis import Analysis
from openassent_analysis.catalogue import own_vendors
from openassent_analysis.files import NOT_ANALYZED
from openassent_analysis.findings import ENDS
from openassent_analysis.fixes import Project
from openassent_analysis.inventory.listing import Listing
from openassent_analysis.inventory.stocktaking import Inventory, take_inventory, with_loads
from openassent_analysis.kinds import with_not_assessed
from openassent_analysis.report import ANOTHER_LOOK, Answer, Examine, Request
from openassent_analysis.sandbox import Sandbox
from openassent_analysis.selection import PROJECT_FILE, knowing
from scan_execution import folders, workspace
from scan_execution.identities import Unread
from scan_execution.publication import compare, publish_findings, publish_unlocked
from scan_execution.selecting import Selecting
from scan_execution.workspace import ArchiveInvalid, ArchiveTooLarge, Limits, Unpacked

# The function's timeout in template.yaml: any invocation still running by then has been killed.
LEASE_SECONDS = 420

_INVALID = Failure("ARCHIVE_INVALID", "The code host's archive of the repository could not be read.")
_GONE = Failure("REPOSITORY_GONE", "The repository is no longer connected.")
# Each report is a write to the scan and its three indexes.
SECONDS_BETWEEN_REPORTS: Final = 5.0
_LONGEST_PATH = 300
_MOST_NOTES = 20
_ADVICE = (
    "Leave large folders out of the archive with export-ignore in .gitattributes, or scan a checkout with "
    "`assent scan local`."
)


def execute_scan(message: ExecuteScan, connect_host: Callable[[int], CodeHost] = connect) -> None:
    """Runs all stages of the scan. Raises Postponed, Rejected."""

    scan_id = ScanId.stored(message.scan_id)

    def run(lease: Lease, scan: ScanItem) -> None:
        # The child starts while the archive is downloaded.
        with folders.scan_folder() as folder, Sandbox(_analysis_limits()) as sandbox, ExitStack() as stack:
            _run(lease, scan, connect_host, folder=folder, examine=sandbox.examine, stack=stack)

    run_attempt(scan_id, lambda: execution.acquire_scan(scan_id, LEASE_SECONDS), run)


def _run(
    lease: Lease,
    scan: ScanItem,
    connect_host: Callable[[int], CodeHost],
    *,
    folder: Path,
    examine: Examine,
    stack: ExitStack,
) -> None:
    """Runs the stages. stack: keeps the project's own vendors known until it is closed."""
    stages, listing = Stages(lease, scan), Listing()
    with stages.run("fetch"):
        repository = known(repositories.find_repository(scan.repository_id), PermanentFailure(_GONE))
        selecting = Selecting(listing, folder, examine)
        unpacked = _fetch(scan, repository, folder, connect_host, selecting)
        selecting.read_settings()
        skipped = unpacked.skipped + Counter({NOT_ANALYZED: listing.only_manifests})
        lacks_files = bool(unpacked.cut or listing.left_out)
        listing.truncated |= unpacked.cut is not None
    selection = listing.selection
    stack.enter_context(own_vendors(selection.vendors))
    with stages.run("inventory"):
        inventory = take_inventory(listing, unpacked.files, folder, knowing(examine, selection.vendors))
        stages.keep(inventory)
    with stages.run("analyze"):
        to_analyze = unpacked.files - skipped.total()
        name = f"{repository.owner}/{repository.name}"
        counting = stages.counting(examine, to_analyze)
        result = openassent_analysis.analyze_folder(
            folder, counting, _analysis_limits(), name, lacks_files=lacks_files, selection=selection
        )
        skipped.update(result.skipped)
        inventory = with_loads(inventory, result.loads)
        stages.keep(inventory)
    # The next scan in the same environment shares the disk.
    shutil.rmtree(folder, ignore_errors=True)
    with stages.run("publish"):
        scan = unlocks.with_paid_access(replace(scan, rules_version=openassent_analysis.rules_version()))
        project = Project.of(inventory, result)
        store = publish_findings if scan.cause.pull_request_number is None else compare
        unread = Unread(listing.unread, is_complete=unpacked.cut is None and not listing.has_more_unread)
        scan = store(scan, lease, result, unread, project)
    incomplete = _describe_omissions(unpacked, listing, result)
    coverage = Coverage(
        unpacked.files,
        result.files_analyzed,
        dict(skipped),
        _kinds(result, listing),
        incomplete,
        _skipped_examples(listing, result),
        suppressed=_suppressed(result),
        notes=_notes(selecting.problem, result),
    )
    _complete(scan, lease, coverage)


def _kinds(result: openassent_analysis.Analysis, listing: Listing) -> tuple[CoveredKind, ...]:
    """Returns the files by kind, those with the most files first."""
    kinds = with_not_assessed(result.kinds, listing.not_assessed).items()
    covered = (CoveredKind(name, kind.analyzed, kind.not_assessed) for name, kind in kinds)
    return tuple(sorted(covered, key=lambda it: (-it.analyzed_files - it.unassessed_files, it.name)))


def _suppressed(result: Analysis) -> dict[str, dict[str, int]]:
    """Returns the number of suppressed findings by kind of suppression and by rule."""
    by_kind: dict[str, Counter[str]] = {}
    for it in result.suppressed:
        by_kind.setdefault(it.suppression.kind, Counter())[it.finding.rule_id] += 1
    return {kind: dict(counts) for kind, counts in by_kind.items()}


def _notes(problem: str | None, result: Analysis) -> tuple[str, ...]:
    """Returns the problems of the repository's settings and comments, as sentences for people."""
    notes = (f"{_shown(note.path)}, line {note.line}: {note.text}" for note in result.notes)
    return tuple(islice(chain([f"{problem} The scan ignored it."] if problem else [], notes), _MOST_NOTES))


def _complete(scan: ScanItem, lease: Lease, coverage: Coverage) -> None:
    """Completes the scan. Publishes its other findings first if its report was paid for in the meantime."""
    finding_count, issue_count = scan.finding_count or 0, scan.issue_count or 0
    try:
        _, sent = execution.complete_scan(scan, lease, finding_count, issue_count, coverage)
    except execution.ReportPaid:
        scan = scan.as_unlocked()
        publish_unlocked(replace(scan, findings_attempt=lease.attempt))
        _, sent = execution.complete_scan(scan, lease, finding_count, issue_count, coverage)
    messages.dispatch(*sent)


def _fetch(
    scan: ScanItem,
    repository: RepositoryItem,
    folder: Path,
    connect_host: Callable[[int], CodeHost],
    selecting: Selecting,
) -> Unpacked:
    """Downloads the commit, lists its files, and unpacks those that are read. Raises PermanentFailure, Postponed."""
    with code_host_errors(repository.installation_id):
        host = connect_host(repository.installation_id)
        try:
            return workspace.unpack(
                _stream(host, repository, scan.head_commit_sha),
                folder,
                limits=_archive_limits(),
                root_directory=scan.root_directory,
                root_file=PROJECT_FILE,
                reason_to_skip=selecting.take,
                leave_out=selecting.listing.leave_out,
            )
        except ArchiveTooLarge as error:
            raise PermanentFailure(_nothing_left(error, scan.root_directory)) from error
        except ArchiveInvalid as error:
            raise PermanentFailure(_INVALID) from error


def _stream(host: CodeHost, repository: RepositoryItem, sha: str) -> Iterator[bytes]:
    """Yields the archive of the commit. Raises ArchiveTooLarge at the limit, and the code host's errors."""
    limit_bytes = settings.scan_archive_megabytes * 1024**2
    try:
        yield from host.stream_tarball(repository.owner, repository.name, sha, limit_bytes=limit_bytes)
    except TarballTooLarge as error:
        raise ArchiveTooLarge("archive_bytes") from error


def _analysis_limits() -> openassent_analysis.Limits:
    """Returns limits that no archive exceeds if it fits on the disk, except for the time."""
    return openassent_analysis.Limits(max_files=settings.scan_stored_files, max_total_bytes=settings.scan_stored_bytes)


def publish_scan(message: PublishScan) -> None:
    """Publishes all findings of an unlocked scan to the inbox, and unlocks the other scans with the same report.

    Does nothing for a scan that no longer exists.
    """
    try:
        scan = reads.get_scan(ScanId.stored(message.scan_id))
    except UnknownScan:
        return
    if scan.status == "completed":
        publish_unlocked(scan)
        for other in unlocks.unlock_others(scan):
            publish_unlocked(other)


class Stages:
    """Reports the stages of one attempt. All methods raise leases.LeaseLost."""

    def __init__(self, lease: Lease, scan: ScanItem) -> None:
        self._lease = lease
        self._scan_id = scan.scan_id
        # An earlier attempt may have completed stages that this one runs again.
        self._reached = scan.progress.completed_stages
        self._inventory: Put | None = None

    @contextmanager
    def run(self, stage: Stage) -> Iterator[None]:
        """Reports the stage as running, then as completed, together with the inventory if the stage has changed it."""
        execution.report_stage(self._lease, stage, "running", reached=self._reached)
        yield
        inventory, self._inventory = self._inventory, None
        execution.report_stage(self._lease, stage, "completed", reached=self._reached, inventory=inventory)

    def keep(self, inventory: Inventory) -> None:
        """Stores the inventory when the current stage is completed."""
        self._inventory = stored_leg(self._scan_id, inventory)

    def counting(self, examine: Examine, total: int) -> Examine:
        """Returns `examine` for the stage `analyze`. Reports how many of the files are analyzed every few seconds.

        Doesn't count a file again if another look at it is needed.
        """
        done = 0

        def counted(requests: Iterator[Request], deadline: float) -> Iterator[Answer]:
            nonlocal done
            reported_at = clock.monotonic()
            for answer in examine(requests, deadline):
                yield answer
                done += not answer[0].language.startswith(ANOTHER_LOOK)
                if clock.monotonic() - reported_at >= SECONDS_BETWEEN_REPORTS:
                    reported_at = clock.monotonic()
                    files = done, max(done, total)
                    execution.report_stage(self._lease, "analyze", "running", reached=self._reached, files=files)

        return counted


def _archive_limits() -> Limits:
    """Returns the limits of an archive whose compressed bytes are limited by `scan_archive_megabytes`."""
    return Limits(
        # Ordinary code shrinks to a fifth.
        unpacked_bytes=8 * settings.scan_archive_megabytes * 1024**2,
        stored_bytes=settings.scan_stored_bytes,
        stored_files=settings.scan_stored_files,
        file_bytes=settings.scan_file_bytes,
    )


def _describe_omissions(unpacked: Unpacked, listing: Listing, result: Analysis) -> str | None:
    """Returns a sentence for each limit of the whole scan that was exceeded, or None."""
    said = []
    if unpacked.cut:
        said.append(f"{_reason(unpacked.cut.limit)}: files after {_shown(unpacked.cut.last_path)} weren't read.")
    skipped = unpacked.skipped + result.skipped
    examples = _skipped_examples(listing, result)
    for reason in sorted(ENDS & skipped.keys()):
        counted = "1 file wasn't" if skipped[reason] == 1 else f"{skipped[reason]:,} files weren't"
        said.append(f"{_reason(reason)}: {counted} analyzed, beginning with {_shown(examples[reason])}.")
    return " ".join(said) or None


def _skipped_examples(listing: Listing, result: Analysis) -> dict[str, str]:
    """Returns the path of a skipped file by reason."""
    analyzed = {reason: paths[0] for reason, paths in result.skipped_examples.items()}
    return listing.skipped_examples | analyzed | listing.left_out


def _nothing_left(error: ArchiveTooLarge, root_directory: str | None) -> Failure:
    """Returns why there is nothing to analyze, and what to do."""
    code = "ARCHIVE_TOO_LARGE" if error.limit == "archive_bytes" else "REPOSITORY_TOO_LARGE"
    part = f"no file of {root_directory}" if root_directory else "no code"
    rest = "it has more than 100 times its archive's size" if error.limit == "ratio" else f"{part} is in what was read"
    return Failure(code, f"{_reason(error.limit)}, and {rest}. {_ADVICE}")


def _reason(limit: str) -> str:
    """Returns the reason for skipped files: a limit of the archive, or of the analysis."""
    applied = _archive_limits()
    return {
        "archive_bytes": f"The repository's archive has more than {settings.scan_archive_megabytes:,} MB",
        "unpacked_bytes": f"The repository has more than {applied.unpacked_bytes // 1024**2:,} MB",
        "ratio": f"The repository has more than {applied.unpacked_bytes // 1024**2:,} MB",
        "listed_files": f"The scanned folder has more than {applied.listed_files:,} files",
        "too many files": f"The scanned folder has more than {applied.stored_files:,} files to analyze",
        "too many bytes": f"The files to analyze take more than {applied.stored_bytes // 1024**2:,} MB",
        "out of time": "The analysis took too long",
    }[limit]


def _shown(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"

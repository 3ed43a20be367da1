"""The content of a pull request's report: the state of its check run, annotations, and the comment."""

from dataclasses import replace
from typing import Literal, NamedTuple

from controlplane.code_host.github.markdown import code_span, one_line, prose
from controlplane.code_host.github.reviews import TEXT_LIMIT, Annotation, CheckState
from controlplane.code_host.items import RepositoryItem
from controlplane.code_host.pull_requests import PullRequestItem
from controlplane.platform.core.ids import ScanId
from controlplane.scans import findings, queue, reads
from controlplane.scans.findings import FindingItem
from controlplane.scans.items import Cause, ScanItem, UnknownScan

QUEUED = ("Waiting", "The scan of this commit starts when the repository has no other.")
SUPERSEDED = CheckState(
    "completed", "Canceled", "A newer commit was pushed, or the pull request was closed.", "cancelled"
)
_MOST_ANNOTATIONS = 200
_MOST_LISTED = 50
_LEVELS: dict[str, Literal["notice", "warning", "failure"]] = {
    "P0": "failure",
    "P1": "failure",
    "P2": "warning",
    "P3": "notice",
}


class Outcome(NamedTuple):
    """The content of a report.

    comment: None until the scan is completed. fixable: the new findings whose fix has edits, most urgent first.
    """

    state: CheckState
    annotations: tuple[Annotation, ...] = ()
    comment: str | None = None
    fixable: tuple[FindingItem, ...] = ()


def outcome_of(item: PullRequestItem, repository: RepositoryItem) -> Outcome:
    """Returns the report on the pull request's head commit."""
    if item.scan_id is not None:
        try:
            return _of_scan(reads.get_scan(item.scan_id), repository)
        except UnknownScan:
            return Outcome(SUPERSEDED)
    if item.closed:
        return Outcome(SUPERSEDED)
    if item.request_id is not None:
        request = reads.find_work(item.request_id)
        if request is not None and request.failure is not None:
            return Outcome(_not_scanned(request.failure.message))
    elif not queue.is_queued(item.repository_id, item.project_id, Cause("pull_request", item.number)):
        return Outcome(_not_scanned("Pull requests of this project aren't scanned anymore."))
    return Outcome(CheckState("queued", *QUEUED))


def _not_scanned(reason: str) -> CheckState:
    return CheckState("completed", "Not scanned", reason, "neutral")


def _of_scan(scan: ScanItem, repository: RepositoryItem) -> Outcome:
    if scan.status == "canceled":
        return Outcome(replace(SUPERSEDED, summary=scan.failure.message) if scan.failure else SUPERSEDED)
    if scan.status == "failed":
        return Outcome(_not_scanned(scan.failure.message if scan.failure else "The scan failed."))
    if scan.is_open:
        return Outcome(CheckState("in_progress", "Scanning", "The scan of this commit is running."))
    new = findings.list_findings(scan.scan_id, scan.findings_attempt, scan.issue_count or 0)
    link = repository.find_link(scan.project_id)
    threshold = link.failure_threshold if link else "P0"
    comparison = scan.comparison
    if comparison is None or comparison.base_scan_id is None:
        title = "Nothing to compare with"
        summary = "The production branch has no completed scan yet, so it isn't known which findings are new."
        return Outcome(CheckState("completed", title, summary, "neutral"), comment=f"### {title}\n\n{summary}")
    failing = [finding for finding in new if finding.priority <= threshold]
    title = _counted(len(new), "new finding")
    if comparison.fixed_count:
        title += f", {comparison.fixed_count} fixed"
    text = _text(scan, new, _fixed(scan))
    state = CheckState("completed", title, text, "failure" if failing else "success")
    annotations = tuple(map(_annotation, new[:_MOST_ANNOTATIONS]))
    fixable = tuple(finding for finding in new if finding.fix and finding.fix.edits)
    return Outcome(state, annotations, f"### {title}\n\n{text}", fixable)


def _fixed(scan: ScanItem) -> list[FindingItem]:
    """Returns the findings that the pull request fixes, except those that the organization can't read."""
    comparison = scan.comparison
    if comparison is None or not comparison.fixed:
        return []
    try:
        base = reads.get_scan(ScanId.stored(comparison.base_scan_id or ""))
    except UnknownScan:
        return []
    readable = findings.list_findings(base.scan_id, base.findings_attempt, base.visible_count)
    return [finding for finding in readable if finding.fingerprint in comparison.fixed]


def _text(scan: ScanItem, new: list[FindingItem], fixed: list[FindingItem]) -> str:
    lines = []
    if new:
        lines += ["**New**", "", *map(_line, new[:_MOST_LISTED])]
        if len(new) > _MOST_LISTED:
            lines.append(f"- and {len(new) - _MOST_LISTED} more")
        lines.append("")
    count = scan.comparison.fixed_count if scan.comparison else 0
    if count:
        lines += ["**Fixed**", "", *map(_line, fixed)]
        if count > len(fixed):
            lines.append(f"- {'and ' if fixed else ''}{count - len(fixed)} more")
        lines.append("")
    if not lines:
        lines = ["This change adds no findings.", ""]
    if scan.coverage and scan.coverage.incomplete:
        lines += ["**This scan is incomplete**: the repository is larger than a scan reads.", ""]
    suppressed = scan.coverage.suppressed_findings if scan.coverage else 0
    if suppressed:
        lines += [f"{_counted(suppressed, 'finding')} suppressed by comments or `.assent.yml`.", ""]
    lines.append(f"Scanned commit {scan.head_commit_sha[:7]}, compared with the last scan of the production branch.")
    return "\n".join(lines)[:TEXT_LIMIT]


def _line(finding: FindingItem) -> str:
    place = finding.location
    title = prose(one_line(finding.title))
    return f"- {finding.priority} {title} ({code_span(place.path)}, line {place.start_line})"


def _annotation(finding: FindingItem) -> Annotation:
    place = finding.location
    message = f"{finding.description}\n\n{finding.remediation}"
    level = _LEVELS.get(finding.priority, "notice")
    return Annotation(place.path, place.start_line, place.end_line, level, finding.title, message)


def _counted(count: int, noun: str) -> str:
    return f"{count or 'No'} {noun}{'' if count == 1 else 's'}"

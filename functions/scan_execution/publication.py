"""The last stage of a scan: stores its findings, publishes those that may be read, and resolves those that are gone.

The scan of a pull request only keeps the findings that the production branch doesn't have. It publishes nothing and
doesn't change the history of the repository's findings, because a pull request may never be merged.

A project's decisions on vendors settle a finding if all of its vendors are ignored, and only if it is about loading
them. Approving a vendor says that the project may use it, not that it may load before consent. A person's later
decision on the finding counts more.

Every step can be repeated: a worker that takes over after a crash does the same again, with the same result.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

from controlplane.code_host import repositories
from controlplane.findings import publications, vendors
from controlplane.findings.discoveries import Discovery, Resolution
from controlplane.findings.fixes import Fix
from controlplane.findings.items import InboxItem, LockedFindings, VendorDecision
from controlplane.platform.queues.messages import dispatch
from controlplane.platform.table.leases import Lease
from controlplane.scans import findings
from controlplane.scans.findings import MOST_ISSUES, MOST_SUPPRESSED, FindingItem, FindingVendor, Location
from controlplane.scans.history import Absence, HistoryItem, list_history, publish_late, put_history, resolve_gone
from controlplane.scans.items import PREVIEW_FINDINGS, ScanItem
from openassent_analysis import Analysis, Finding
from openassent_analysis.catalogue import catalogue
from openassent_analysis.findings import COMMENT, RULE, VENDOR, Suppressed, Suppression
from openassent_analysis.fixes import Project, fix_for
from openassent_analysis.identities import identify
from openassent_analysis.selection import PROJECT_FILE
from scan_execution import identities
from scan_execution.identities import Baseline, Sight, Unread, read_baseline
from scan_execution.uses import catalogue_vendor, publish_unlocked_uses, publish_uses

# Ignoring a vendor is about loading it. It doesn't excuse personal data in code that calls the vendor.
_CATEGORIES = frozenset({"trackers", "banner"})

_SUPPRESSED_BY = {
    COMMENT: "A comment in the code suppresses it:",
    RULE: f"{PROJECT_FILE} suppresses it:",
    VENDOR: f"{PROJECT_FILE} accepts the vendor:",
}

type Decisions = Mapping[str, VendorDecision]


class Identified(NamedTuple):
    """The findings that a scan reported, by fingerprint and without repetitions, and earlier ones to compare them with.

    current: their history, as of this scan. places: how often each was reported. suppressed: those that the repository
    suppresses.
    """

    sight: Sight
    history: Mapping[str, HistoryItem]
    baseline: Baseline
    findings: Mapping[str, Finding]
    current: Mapping[str, HistoryItem]
    places: Counter[str]
    suppressed: Mapping[str, Suppressed]


def _identify(scan: ScanItem, result: Analysis, unread: Unread) -> Identified:
    sight = sight_of(scan, result, unread)
    history = list_history(scan.repository_id)
    found = {finding.fingerprint: finding for finding in result.findings}
    suppressed = {it.finding.fingerprint: it for it in result.suppressed if it.finding.fingerprint not in found}
    # A suppressed finding keeps its identity, so that no other one continues it.
    fingerprints = identify([*found.values(), *(it.finding for it in suppressed.values())], history, sight.misses)
    by_fingerprint = {fingerprints[it]: finding for it, finding in found.items()}
    silent = {fingerprints[it]: finding for it, finding in suppressed.items()}
    sight = sight._replace(silenced={it: _silence(finding.suppression) for it, finding in silent.items()})
    current = {
        fingerprint: identities.found_again(scan, finding, fingerprint, history.get(fingerprint), sight.linked)
        for fingerprint, finding in by_fingerprint.items()
    }
    places = Counter(fingerprints[finding.fingerprint] for finding in result.findings)
    return Identified(sight, history, read_baseline(scan), by_fingerprint, current, places, silent)


def _suppressed(scan: ScanItem, identified: Identified, project: Project) -> list[FindingItem]:
    """Returns the suppressed findings to store after the scan's issues, most urgent first."""
    stored = []
    for fingerprint, (finding, suppression) in islice(identified.suppressed.items(), MOST_SUPPRESSED):
        earlier = identified.history.get(fingerprint)
        known = identities.found_again(scan, finding, fingerprint, earlier, identified.sight.linked)
        issue = to_issue(scan, finding, known, project)
        stored.append(replace(issue, suppression=findings.Suppression(*suppression)))
    return stored


def _silence(suppression: Suppression) -> str:
    """Returns why an inbox item is resolved whose finding is suppressed."""
    by = _SUPPRESSED_BY[suppression.kind]
    return f"{by} {suppression.reason}"


def publish_findings(scan: ScanItem, lease: Lease, result: Analysis, unread: Unread, project: Project) -> ScanItem:
    """Stores and publishes the findings, and resolves earlier ones. Raises LeaseLost.

    project: decides which fixes fit.
    Returns the scan with its numbers of places and of issues, those also by priority, and with its comparison if there
    is an earlier scan.
    """
    identified = _identify(scan, result, unread)
    sight, history, baseline, found, current, *_ = identified
    known = baseline.known(scan, history)
    issues = [
        replace(to_issue(scan, finding, current[it], project), is_new=baseline.scan is not None and it not in known)
        for it, finding in found.items()
    ]
    may_be_hidden = issues[MOST_ISSUES:] if scan.access == "full" else issues
    items = findings.find_items(scan, [issue.fingerprint for issue in may_be_hidden])
    if scan.is_preview:
        issues = _with_visible_first(issues, items)
    kept = issues[:MOST_ISSUES]
    recorded = history.keys() | {issue.fingerprint for issue in kept}
    put_history(
        lease, [it for it in current.values() if it.fingerprint in recorded and it != history.get(it.fingerprint)]
    )
    findings.put_findings(scan.scan_id, lease.attempt, [*kept, *_suppressed(scan, identified, project)])
    scan = replace(
        scan,
        finding_count=len(result.findings),
        issue_count=len(kept),
        priority_counts=Counter(issue.priority for issue in kept),
        preview_counts=Counter(issue.priority for issue in kept[:PREVIEW_FINDINGS]) if scan.is_preview else None,
    )
    visible = scan.visible_count
    decided = decisions_of(scan)
    dispatch(*publications.publish_findings([discovery_of(scan, it, decided, lease.attempt) for it in kept[:visible]]))
    raised = _refresh_hidden(
        [(issue, discovery_of(scan, issue, decided, lease.attempt)) for issue in issues[visible:]], items
    )
    _resolve_missing(scan, lease, sight, {**history, **current}, found=current)
    publish_uses(scan, lease, kept[:visible], sight.knows)
    announce_locked(scan, len(raised & {issue.fingerprint for issue in kept if issue.is_new}), lease.attempt)
    findings.delete_attempts_before(scan.scan_id, lease.attempt)
    if baseline.scan is None:
        return scan
    return replace(
        scan, comparison=baseline.compare({*current, *sight.silenced}, sight, sum(issue.is_new for issue in kept))
    )


def _with_visible_first(issues: Sequence[FindingItem], items: Mapping[str, InboxItem]) -> list[FindingItem]:
    """Returns the issues of a free preview, beginning with those that it shows. Both parts are the most urgent first.

    It shows those that earlier scans showed, which have an inbox item, and then the most urgent. So a person can verify
    a fix, and sees another finding for each one that is fixed, but not for one that is dismissed.
    """
    visible = {it.fingerprint for it in sorted(issues, key=lambda it: it.fingerprint not in items)[:PREVIEW_FINDINGS]}
    return sorted(issues, key=lambda it: it.fingerprint not in visible)


def compare(scan: ScanItem, lease: Lease, result: Analysis, unread: Unread, project: Project) -> ScanItem:
    """Stores the new findings. Returns the scan with their number, their places, and how the others compare.

    Without a scan of the production branch, all findings are kept. Those that decisions on vendors settle never are.
    """
    identified = _identify(scan, result, unread)
    sight, history, baseline, found, current, places, _ = identified
    # A scan stores its most urgent findings only. The history has more.
    known = {finding.fingerprint for finding in baseline.findings}
    if baseline.scan is not None:
        known |= {it.fingerprint for it in history.values() if it.gone is None and scan.project_id in it.project_ids}
    decided = decisions_of(scan)
    issues = [to_issue(scan, finding, current[it], project) for it, finding in found.items() if it not in known]
    new = [issue for issue in issues if not discovery_of(scan, issue, decided).settled]
    kept = new[:MOST_ISSUES]
    findings.put_findings(scan.scan_id, lease.attempt, [*kept, *_suppressed(scan, identified, project)])
    findings.delete_attempts_before(scan.scan_id, lease.attempt)
    return replace(
        scan,
        finding_count=sum(places[issue.fingerprint] for issue in new),
        issue_count=len(kept),
        comparison=baseline.compare({*found, *sight.silenced}, sight),
    )


def sight_of(scan: ScanItem, result: Analysis, unread: Unread) -> Sight:
    """Returns the scan's coverage: project, folder, paths that it didn't analyze, and the linked projects."""
    repository = repositories.find_repository(scan.repository_id)
    linked = {link.project_id for link in repository.links} if repository else set()
    uncertain = result.uncertain.union(unread.paths)
    read = None if unread.is_complete else frozenset(result.paths)
    asks = result.asks_for_consent
    return Sight(scan.project_id, scan.root_directory, uncertain, linked, asks, read, result.selection)


def decisions_of(scan: ScanItem) -> Decisions:
    """Returns the project's decisions by the catalogue's vendor id. The last one on a vendor counts.

    A vendor that the catalogue doesn't contain is left out.
    """
    found = dict[str, VendorDecision]()
    for listed in sorted(vendors.list_all_vendors(scan.project_id), key=lambda it: it.decided_at or ""):
        vendor = catalogue_vendor(listed)
        if vendor is not None and listed.decision is not None:
            found[vendor.id] = listed.decision
    return found


def discovery_of(scan: ScanItem, finding: FindingItem, decisions: Decisions, attempt: int = 0) -> Discovery:
    """Returns the finding as an inbox discovery, settled if the project ignores all vendors that it is about."""
    discovery = findings.as_discovery(scan, finding)._replace(attempt=attempt)
    if finding.category not in _CATEGORIES or not finding.vendors:
        return discovery
    decided = tuple(decisions[vendor.id] for vendor in finding.vendors if vendor.id in decisions)
    discovery = discovery._replace(decisions=decided)
    if len(decided) < len(finding.vendors) or any(decision.state != "ignored" for decision in decided):
        return discovery
    names = ", ".join(vendor.name for vendor in finding.vendors)
    return discovery._replace(settled=True, settled_reason=f"The project ignored {names}.")


def _refresh_hidden(hidden: Sequence[tuple[FindingItem, Discovery]], items: Mapping[str, InboxItem]) -> set[str]:
    """Reopens or settles items of findings that the scan doesn't show. Returns the fingerprints of those without one.

    Findings that are settled by decisions aren't returned. items: by fingerprint.
    """
    new = set()
    for finding, discovery in hidden:
        item = items.get(finding.fingerprint)
        if item is None:
            if not discovery.settled:
                new.add(finding.fingerprint)
        elif item.status == "resolved" or item.dismissed_until or (item.status == "open" and discovery.settled):
            dispatch(*publications.refresh_status(discovery))
    return new


def _resolve_missing(
    scan: ScanItem, lease: Lease, sight: Sight, history: Mapping[str, HistoryItem], found: Mapping[str, HistoryItem]
) -> None:
    """Marks the findings that are gone, and resolves their items."""
    missing = [it for it in history.values() if it.gone is None and it.fingerprint not in found]
    absence = Absence(scan.scan_id, scan.created_at)
    gone = [replace(it, gone=absence, unsettled=True, project_ids=()) for it in missing if sight.misses(it)]
    elsewhere = [
        replace(it, project_ids=tuple(other for other in it.project_ids if other != scan.project_id))
        for it in missing
        if scan.project_id in it.project_ids and not sight.misses(it) and sight.covers(it.path)
    ]
    put_history(lease, [*gone, *elsewhere])
    earlier = [it for it in history.values() if it.unsettled]
    dispatch(*resolve_gone(scan, lease, [*gone, *earlier], sight.silenced))


def to_issue(scan: ScanItem, finding: Finding, known: HistoryItem, project: Project) -> FindingItem:
    """Returns the finding as it is stored. known: its history, which has its fingerprint."""
    place, fix, catalog = finding.location, fix_for(finding, project), catalogue().vendors
    vendors_of = map(catalog.__getitem__, finding.vendor_ids)
    lines = f"#L{place.start_line}" + (f"-L{place.end_line}" if place.end_line > place.start_line else "")
    permalink = f"{scan.repository_url}/blob/{scan.head_commit_sha}/{quote(place.path)}{lines}"
    return FindingItem(
        fingerprint=known.fingerprint,
        rule_id=finding.rule_id,
        title=finding.title,
        description=finding.description,
        category=finding.category,
        severity=finding.severity,
        priority=finding.priority,
        location=Location(**asdict(place), permalink=permalink),
        remediation=finding.remediation,
        references=finding.references,
        first_seen_at=known.first_seen_at,
        vendors=tuple(FindingVendor(it.id, it.name, it.domains[0].partition("/")[0]) for it in vendors_of),
        confidence=finding.confidence,
        fix=None if fix is None else Fix.of(fix),
    )


# Locked reports


def announce_locked(scan: ScanItem, new_count: int, attempt: int) -> None:
    """Puts one item into the inbox for the scan's new findings that it hides, without their content.

    Resolves the item if there is nothing to announce. A repository's first scan announces nothing, because its report
    says how many findings are hidden.
    """
    notice = _notice(scan, new_count)._replace(attempt=attempt)
    if new_count:
        dispatch(*publications.publish_findings([notice]))
        return
    reason = f"Scan {scan.scan_id} has no new locked findings."
    dispatch(*publications.withdraw(notice.item_id, Resolution(scan.scan_id, scan.created_at, reason, attempt)))


def publish_unlocked(scan: ScanItem) -> None:
    """Publishes all findings of the unlocked scan and its vendors, and resolves the item that announced them."""
    decided = decisions_of(scan)
    readable = findings.list_findings(scan.scan_id, scan.findings_attempt, scan.visible_count)
    told = publish_late(scan, {it.fingerprint: discovery_of(scan, it, decided) for it in readable})
    reason = f"The findings of scan {scan.scan_id} were unlocked."
    publish_unlocked_uses(scan)
    withdrawn = publications.withdraw(_notice(scan, 0).item_id, Resolution(scan.scan_id, scan.created_at, reason))
    dispatch(*told, *withdrawn)


def _notice(scan: ScanItem, new_count: int) -> Discovery:
    price = scan.unlock_credits or 0
    counted = "1 new finding" if new_count == 1 else f"{new_count} new findings"
    return Discovery(
        organization_id=scan.organization_id,
        source="code-audit",
        identity=(scan.repository_id, "locked-findings"),
        title=f"{counted} in {scan.repository_name} {'is' if new_count == 1 else 'are'} locked",
        observed_at=scan.created_at,
        summary=(
            f"A scan of {scan.branch} found {counted}. Unlocking the report costs {price} credits. "
            "An owner of the organization can unlock it."
        ),
        project_id=scan.project_id,
        repository_id=scan.repository_id,
        repository_name=scan.repository_name,
        locked_findings=LockedFindings(scan.scan_id, new_count, price),
    )

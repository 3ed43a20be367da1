"""Findings of each scan, and when each finding was first seen in a repository."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from controlplane.core.retention import expiry
from controlplane.core.settings import settings
from controlplane.store import keys, scans
from controlplane.store.inbox import Discovery, Evidence, Priority
from controlplane.store.keys import Key
from controlplane.store.scans import ScanItem
from controlplane.store.table import table

_PAGE = 100


class Location(NamedTuple):
    """A place in the repository. Lines and columns count from 1."""

    path: str
    start_line: int
    end_line: int
    start_column: int
    end_column: int
    snippet: str
    permalink: str


class Finding(NamedTuple):
    """One issue found by a scan. Its fingerprint is the same in every scan of the repository that finds it."""

    fingerprint: str
    rule_id: str
    title: str
    description: str
    category: str
    severity: str
    priority: str
    location: Location
    remediation: str
    references: tuple[str, ...]
    first_seen_at: str


def written(finding: Finding) -> dict[str, Any]:
    """Returns the finding's stored attributes."""
    place = finding.location
    return {
        "fingerprint": finding.fingerprint,
        "ruleId": finding.rule_id,
        "title": finding.title,
        "description": finding.description,
        "category": finding.category,
        "severity": finding.severity,
        "priority": finding.priority,
        "location": {
            "path": place.path,
            "startLine": place.start_line,
            "endLine": place.end_line,
            "startColumn": place.start_column,
            "endColumn": place.end_column,
            "snippet": place.snippet,
            "permalink": place.permalink,
        },
        "remediation": finding.remediation,
        "references": finding.references,
        "firstSeenAt": finding.first_seen_at,
    }


def read_finding(item: Mapping[str, Any]) -> Finding:
    """Returns the finding from its stored attributes."""
    place = item["location"]
    return Finding(
        item["fingerprint"],
        item["ruleId"],
        item["title"],
        item["description"],
        item["category"],
        item["severity"],
        item["priority"],
        Location(
            place["path"],
            place["startLine"],
            place["endLine"],
            place["startColumn"],
            place["endColumn"],
            place["snippet"],
            place["permalink"],
        ),
        item["remediation"],
        tuple(item["references"]),
        item["firstSeenAt"],
    )


def as_discovery(scan: ScanItem, finding: Finding) -> Discovery:
    """Returns the finding as an inbox discovery. All scans of the repository that find it yield the same inbox item."""
    place = finding.location
    shown = Evidence(
        f"{place.path}, line {place.start_line}",
        place.permalink,
        place.path,
        place.start_line,
        place.end_line,
        place.snippet,
    )
    return Discovery(
        scan.organization_id,
        "code-audit",
        (scan.repository_id, finding.fingerprint),
        finding.title,
        scan.created_at,
        summary=finding.description,
        priority=cast("Priority", finding.priority),
        project_id=scan.project_id,
        repository_id=scan.repository_id,
        repository_name=scan.repository_name,
        rule_id=finding.rule_id,
        description=finding.description,
        remediation=finding.remediation,
        references=finding.references,
        evidence=(shown,),
    )


def date_findings(repository_id: str, fingerprints: Sequence[str], seen_at: str) -> dict[str, str]:
    """Returns when each finding was first seen in the repository. Stores `seen_at` for new findings.

    Only the worker that runs the repository's single active scan calls this, so there are no concurrent writes.
    """
    wanted = [keys.finding_history(repository_id, fingerprint) for fingerprint in fingerprints]
    known = {
        fingerprint: item["firstSeenAt"]
        for fingerprint, item in zip(fingerprints, table.batch_get(wanted), strict=True)
        if item
    }
    table.put_all(
        {**key._asdict(), "firstSeenAt": seen_at}
        for key, fingerprint in zip(wanted, fingerprints, strict=True)
        if fingerprint not in known
    )
    return {fingerprint: known.get(fingerprint, seen_at) for fingerprint in fingerprints}


def put_findings(scan_id: str, attempt: int, findings: Sequence[Finding]) -> None:
    """Stores the findings of an attempt at the scan, most urgent first. Overwrites those it stored before."""
    table.put_all(
        {**keys.finding(scan_id, attempt, rank)._asdict(), **written(finding)} for rank, finding in enumerate(findings)
    )


def list_findings(scan_id: str, attempt: int, count: int) -> list[Finding]:
    """Returns the attempt's most urgent findings, in order, at most `count`. Consistent: access depends on it."""
    if count == 0:
        return []
    page = table.query(keys.scan_pk(scan_id), prefix=keys.finding_prefix(attempt), limit=count, consistent=True)
    return [read_finding(item) for item in page.items]


def expire_before(scan_id: str) -> None:
    """Sets the expiry of the findings of the scans that this one supersedes.

    A scan supersedes the earlier completed scans of the same repository and project. From the expiry date on, their
    findings are no longer shown, and TTL removes them. Scans that already have an expiry are skipped.
    """
    expires = expiry(settings.finding_retention_days)
    try:
        scan = scans.get_scan(scan_id)
    except scans.UnknownScan:
        return
    if not expires:
        return
    for earlier in scans.list_superseded(scan):
        after = None
        while True:
            page = table.query(keys.scan_pk(earlier.scan_id), prefix=keys.FINDING_PREFIX, limit=_PAGE, after=after)
            # Findings are immutable, so they can be rewritten as read.
            table.put_all({**item, **expires} for item in page.items)
            after = page.next_sk
            if after is None:
                break
        scans.set_findings_expiry(earlier.scan_id, expires["expiresAt"])


def delete_attempts_before(scan_id: str, attempt: int) -> None:
    """Removes the findings of earlier, failed attempts at the scan."""
    while True:
        page = table.query(keys.scan_pk(scan_id), prefix=keys.FINDING_PREFIX, limit=_PAGE, consistent=True)
        left = [item for item in page.items if item["sk"] < keys.finding_prefix(attempt)]
        table.delete_all(Key(item["pk"], item["sk"]) for item in left)
        if len(left) < len(page.items) or page.next_sk is None:
            return

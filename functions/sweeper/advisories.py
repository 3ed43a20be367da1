"""The product's advisories: versions of libraries that ignore consent, are vulnerable, or have no support anymore.

`advisories.yaml` is the list, and docs/advisories.md describes it. Each completed scan of a production branch is due
once, and again when the list has changed. All packages of its repository are then compared with the whole list, so an
interrupted step can be repeated.

A package counts with the version of the lock file, or with the newest one that its range allows.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from math import inf
from pathlib import Path
from typing import Literal, NamedTuple

import yaml

from controlplane.code_host import repositories
from controlplane.findings import inbox, publications
from controlplane.findings.items import Discovery, Evidence, Resolution, finding_item_id
from controlplane.platform.core.ids import RepositoryId, ScanId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.queues import messages
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import ConditionFailed, Unrecorded, Update, table
from controlplane.scans import reads
from controlplane.scans.items import ScanItem
from controlplane.scans.reads import VendorPackage

LIST = Path(__file__).with_name("advisories.yaml")

type Version = tuple[float, ...]


class Advisory(NamedTuple):
    """An entry of the list. docs/advisories.md describes the fields."""

    id: str
    package: str
    affected: str
    kind: Literal["ignores-consent", "vulnerable", "unsupported"]
    priority: Priority
    title: str
    summary: str
    remediation: str
    date: str
    source: str
    fixed: str | None = None
    withdrawn: bool = False

    def affects(self, package: VendorPackage) -> bool:
        """Returns whether the package's version is affected. An unknown one is only if every version is."""
        if self.withdrawn or package.name != self.package or not package.path.endswith("package.json"):
            return False
        if self.affected == "*":
            return True
        return package.newest is not None and is_within(package.newest, self.affected)


@cache
def advisories() -> tuple[Advisory, ...]:
    entries = yaml.safe_load(LIST.read_bytes())
    return tuple(Advisory(**{**entry, "date": str(entry["date"])}) for entry in entries)


def edition() -> str:
    """Returns the identity of the list, which changes with any entry."""
    return hashlib.sha256(repr(advisories()).encode()).hexdigest()[:16]


def is_within(version: str, affected: str) -> bool:
    """Returns whether the version is in one of the ranges: `<1.2.3`, or `>=1.0.0 <1.2.3`, separated by `||`."""
    parsed = _parse(version)
    return any(all(_holds(parsed, limit) for limit in part.split()) for part in affected.split("||"))


def _holds(version: Version, limit: str) -> bool:
    if limit.startswith(">="):
        return version >= _parse(limit[2:])
    if limit.startswith("<"):
        return version < _parse(limit[1:])
    return version == _parse(limit)


def _parse(version: str) -> Version:
    """Returns the parts of `1.2.3`, or of `1.x`, which is later than any `1.2.3`."""
    return tuple(inf if part == "x" else int(part) for part in version.split("."))


def match_advisories(run: SweepRun) -> None:
    """Compares the due repositories with the list, and changes their items. Runs as a step of the sweep."""
    current = edition()
    for entry in run.entries(keys.ADVISORIES_PKS):
        if entry.get("matched") == current:
            continue
        with run.isolating(entry):
            repository_id = RepositoryId.stored(entry["sk"].partition("#")[0])
            _match(repository_id)
            matched = {"matched": current, "scanId": entry["scanId"]}
            with suppress(ConditionFailed):  # another scan was completed, so it is due again, or it was deleted
                key = Key(entry["pk"], entry["sk"])
                table.update(Update(key, "SET #matched = :matched", "#scanId = :scanId", matched), Unrecorded.PROGRESS)
            run.finished += 1


def _match(repository_id: RepositoryId) -> None:
    """Opens or updates the items of advisories about what the latest scans have, and resolves the others."""
    repository = repositories.find_repository(repository_id)
    linked = {link.project_id for link in repository.links} if repository else set()
    entries = table.query(keys.latest_scans_pk(repository_id), prefix=f"{repository_id}#", consistent=True).items
    found = [reads.find_with_inventory(ScanId.stored(it["scanId"])) for it in entries if it["projectId"] in linked]
    packages = [
        (it.scan, package)
        for it in found
        if it is not None and it.inventory is not None
        for vendor in it.inventory.vendors
        for package in vendor.packages
    ]
    latest = max((it.scan for it in found if it is not None), key=lambda scan: scan.created_at, default=None)
    if latest is None:
        return
    affected = {it: [place for place in packages if it.affects(place[1])] for it in advisories()}
    told = publications.publish_findings(_discovery(it, places) for it, places in affected.items() if places)
    item_ids = {
        finding_item_id(repository_id.organization_id, "advisory", repository_id, it.id): it
        for it, places in affected.items()
        if not places
    }
    items = inbox.find_items(item_ids)
    for item_id, advisory in item_ids.items():
        if item_id in items and items[item_id].status in {"open", "accepted"}:
            reason = f"Scan {latest.scan_id} finds no affected version."
            if advisory.withdrawn:
                reason = "The advisory was withdrawn."
            told += publications.withdraw(item_id, Resolution(latest.scan_id, latest.created_at, reason))
    messages.dispatch(*told)


def _discovery(advisory: Advisory, places: Sequence[tuple[ScanItem, VendorPackage]]) -> Discovery:
    scan = max((scan for scan, _ in places), key=lambda it: it.created_at)
    return Discovery(
        organization_id=scan.organization_id,
        source="advisory",
        identity=(scan.repository_id, advisory.id),
        title=advisory.title,
        observed_at=scan.created_at,
        summary=advisory.summary,
        priority=advisory.priority,
        project_id=scan.project_id,
        repository_id=scan.repository_id,
        repository_name=scan.repository_name,
        description=_describe(advisory),
        remediation=advisory.remediation,
        references=(advisory.source,),
        evidence=tuple(_evidence(places)),
        edition=advisory.date,
    )


def _describe(advisory: Advisory) -> str:
    said = {
        "ignores-consent": "This library can act against the visitor's choice.",
        "vulnerable": "This library has a known vulnerability.",
        "unsupported": "This library has no support anymore.",
    }[advisory.kind]
    versions = "all versions" if advisory.affected == "*" else f"versions {advisory.affected.replace('||', 'or')}"
    first = f", and {advisory.fixed} is the first good one" if advisory.fixed else ""
    return f"{said} The advisory {advisory.id} of {advisory.date} is about {versions} of {advisory.package}{first}."


def _evidence(places: Sequence[tuple[ScanItem, VendorPackage]]) -> Iterator[Evidence]:
    for scan, package in places:
        written = f"{package.name} {package.version}" if package.version else package.name
        counted = f", which is at most {package.newest}" if package.newest not in {None, package.version} else ""
        url = f"{scan.repository_url}/blob/{scan.head_commit_sha}/{package.path}"
        yield Evidence(f"{package.path}: {written}{counted}", url)

"""The product's advisories: versions of libraries that ignore consent, are vulnerable, or have no support anymore.

`advisories.yaml` is the list, and docs/advisories.md describes it. A repository is due once a scan of its production
branch is completed or a project is unlinked or deleted, and all are when the list has changed. All packages of a due
repository are compared with the whole list, so an interrupted step can be repeated.

A package counts with the version of the lock file, or with the newest one that its range allows.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import yaml

from controlplane.code_host import repositories
from controlplane.findings import publications
from controlplane.findings.discoveries import Discovery, Resolution, finding_item_id
from controlplane.findings.items import Evidence
from controlplane.platform.core.ids import RepositoryId, ScanId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.queues import comparisons, messages
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import ConditionFailed, Delete, Put, Unrecorded, table
from controlplane.scans import reads
from controlplane.scans.items import ScanItem
from controlplane.scans.reads import ScanWithInventory, VendorPackage

LIST = Path(__file__).with_name("advisories.yaml")

_PAGE = 100

type Version = tuple[float, ...]
type Place = tuple[ScanItem, VendorPackage]


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
    _make_all_due(run)
    for entry in run.entries(keys.ADVISORIES_PKS):
        with run.isolating(entry):
            change = {"change": entry["change"]}
            _match(RepositoryId.stored(entry["sk"]))
            with suppress(ConditionFailed):  # it has become due again
                done = Delete(Key(entry["pk"], entry["sk"]), "#change = :change", change)
                table.delete(done, Unrecorded.PROGRESS)
            run.finished += 1


def _make_all_due(run: SweepRun) -> None:
    """Makes all repositories due if the list has changed: some pages, after which the next run continues."""
    position = table.get(keys.ADVISORIES_EDITION)
    if position is None or position["edition"] != edition():
        position = {**keys.ADVISORIES_EDITION._asdict(), "edition": edition(), "partitions": 0, "after": None}
    for _ in keys.LATEST_SCANS_PKS:
        if position["partitions"] == len(keys.LATEST_SCANS_PKS) or run.is_over:
            return
        pk = keys.LATEST_SCANS_PKS[position["partitions"]]
        page = table.query(pk, after=position["after"], limit=_PAGE, consistent=True)
        due = {entry["sk"].partition("#")[0] for entry in page.items}
        table.put_all((comparisons.due_leg(it).item for it in sorted(due)), Unrecorded.PROGRESS)
        partitions = position["partitions"] + (page.next_sk is None)
        position = {**position, "partitions": partitions, "after": page.next_sk}
        table.put(Put(position), Unrecorded.PROGRESS)


def _match(repository_id: RepositoryId) -> None:
    """Opens or updates the items of advisories about what the latest scans have, and resolves the others.

    Unless it has all packages, it resolves only the items of withdrawn advisories.
    """
    item_ids = {
        it: finding_item_id(repository_id.organization_id, "advisory", repository_id, it.id) for it in advisories()
    }
    # Read before the scans: what a concurrent comparison of later ones stores after this isn't undone.
    stored = table.batch_get([keys.inbox_item(*it.location) for it in item_ids.values()])
    items = {advisory: item for advisory, item in zip(item_ids, stored, strict=True) if item}
    repository = repositories.find_repository(repository_id)
    if repository is None:
        return
    linked = repositories.find_linked_projects([repository])
    entries = table.query(keys.latest_scans_pk(repository_id), prefix=f"{repository_id}#", consistent=True).items
    read = [reads.find_with_inventory(ScanId.stored(it["scanId"])) for it in entries]
    every = [it for it in read if it is not None]
    found = [it for it in every if it.scan.project_id in linked]
    latest = max((it.scan for it in found or every), key=lambda scan: scan.created_at, default=None)
    if latest is None:
        return
    places = _affected(found)
    told = publications.publish_findings(
        _discovery(it, places[it], _observed_at(latest, items.get(it))) for it in advisories() if places[it]
    )
    is_complete = all(it.inventory is not None and not it.inventory.truncated for it in found)
    reason = f"Scan {latest.scan_id} finds no affected version." if found else "No linked project has a scan."
    for advisory, item in items.items():
        if not places[advisory] and (is_complete or advisory.withdrawn):
            because = "The advisory was withdrawn." if advisory.withdrawn else reason
            resolution = Resolution(latest.scan_id, _observed_at(latest, item), because)
            told += publications.withdraw(item_ids[advisory], resolution)
    messages.dispatch(*told)


def _affected(found: Sequence[ScanWithInventory]) -> dict[Advisory, list[Place]]:
    """Returns the affected packages of the scans for each advisory."""
    packages = [
        (it.scan, package)
        for it in found
        if it.inventory is not None
        for vendor in it.inventory.vendors
        for package in vendor.packages
    ]
    return {it: [place for place in packages if it.affects(place[1])] for it in advisories()}


def _observed_at(latest: ScanItem, item: Mapping[str, Any] | None) -> str:
    """Returns the time of the latest scan, or the item's time if that is later: its project may be unlinked by now."""
    return max(latest.created_at, item["observedAt"]) if item else latest.created_at


def _discovery(advisory: Advisory, places: Sequence[Place], observed_at: str) -> Discovery:
    scan = max((scan for scan, _ in places), key=lambda it: it.created_at)
    return Discovery(
        organization_id=scan.organization_id,
        source="advisory",
        identity=(scan.repository_id, advisory.id),
        title=advisory.title,
        observed_at=observed_at,
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
    about = f"The advisory {advisory.id} of {advisory.date} is about {versions} of {advisory.package}{first}."
    return f"{advisory.summary} {said} {about}"


def _evidence(places: Sequence[Place]) -> Iterator[Evidence]:
    for scan, package in places:
        written = f"{package.name} {package.version}" if package.version else package.name
        counted = f", which is at most {package.newest}" if package.newest not in {None, package.version} else ""
        url = f"{scan.repository_url}/blob/{scan.head_commit_sha}/{quote(package.path)}"
        yield Evidence(f"{package.path}: {written}{counted}", url)

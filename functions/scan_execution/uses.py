"""Writes the vendors that a scan found into the lists of the projects that its repository is linked to.

A scan counts for its own project, and for linked projects that are built from the same branch and folder. They learn
what may be read of the scan: the readable part of its inventory, and the vendors of its readable findings.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from controlplane.code_host import repositories
from controlplane.findings.code_uses import FoundVendor, record_uses
from controlplane.findings.items import CodeUse, VendorPlace
from controlplane.findings.vendors import VendorItem, list_all_vendors
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.table.leases import Lease
from controlplane.projects.store import UnknownProject
from controlplane.scans import reads
from controlplane.scans.findings import FindingItem
from controlplane.scans.history import held
from controlplane.scans.items import ScanItem
from controlplane.scans.reads import Inventory
from openassent_analysis.catalogue import Vendor, catalogue


def publish_uses(
    scan: ScanItem, lease: Lease, readable: Iterable[FindingItem], is_known: Callable[[str], bool]
) -> None:
    """Stores which vendors the running scan found, and which it no longer found. Raises leases.LeaseLost.

    readable: the findings that the scan's access shows. is_known: whether the scan knows what is in a file.
    """
    inventory = reads.find_inventory(scan.scan_id)
    if inventory is not None:  # the scan wasn't deleted with its project
        found = _found(scan, inventory, readable)
        _record(scan, found, _knows_nothing if inventory.truncated else is_known, lease)


def publish_unlocked_uses(scan: ScanItem) -> None:
    """Stores the vendors that the unlocked scan found, except those that a newer scan no longer found."""
    inventory = reads.find_inventory(scan.scan_id)
    if scan.cause.pull_request_number is not None or inventory is None:
        return
    found = _found(scan, inventory, ())
    newest = reads.find_production_scan(scan.repository_id, scan.project_id, completed=True)
    if newest is not None and newest.created_at > scan.created_at:
        current = reads.find_inventory(newest.scan_id)
        left = {vendor.id for vendor in current.vendors} if current else set()
        found = {vendor_id: vendor for vendor_id, vendor in found.items() if vendor_id in left}
    _record(scan, found, _knows_nothing)


def _knows_nothing(_: str) -> bool:
    return False


def _found(scan: ScanItem, inventory: Inventory, readable: Iterable[FindingItem]) -> dict[str, FoundVendor]:
    """Returns all vendors of the scan, each with the places that may be shown."""
    places = defaultdict[str, dict[tuple[str, str | None], VendorPlace]](dict)
    for finding in readable if scan.access != "full" else ():
        if finding.category == "trackers":
            place = VendorPlace(finding.location.path, None if finding.confidence == "low" else False)
            for named in finding.vendors:
                places[named.id].setdefault((place.path, None), place)
    for vendor in inventory.readable(scan).vendors:
        for place in (*vendor.places, *(VendorPlace(it.path, package=it.name) for it in vendor.packages)):
            places[vendor.id].setdefault((place.path, place.package), place)
    found = {vendor.id: FoundVendor(vendor.name, vendor.category) for vendor in inventory.vendors}
    for vendor_id, listed in places.items():
        known = found.get(vendor_id) or catalogue().vendors.get(vendor_id)
        if known is not None:  # a vendor of the project's own is known only while it is scanned
            found[vendor_id] = FoundVendor(known.name, known.category, tuple(listed.values()))
    return found


def _record(
    scan: ScanItem, found: Mapping[str, FoundVendor], is_known: Callable[[str], bool], lease: Lease | None = None
) -> None:
    repository = repositories.find_repository(scan.repository_id)
    if repository is None:
        return
    tree = f"{scan.repository_url}/blob/{scan.head_commit_sha}"
    seen = CodeUse(scan.repository_id, scan.repository_name, scan.scan_id, scan.created_at, tree)
    for link in repository.links:
        is_built_alike = (link.production_branch or repository.default_branch, link.root_directory) == (
            scan.branch,
            scan.root_directory,
        )
        if is_built_alike or link.project_id == scan.project_id:
            ids = _ids_in(link.project_id)
            named = {ids.get(vendor_id, vendor_id): vendor for vendor_id, vendor in found.items()}
            with suppress(UnknownProject):
                record_uses(link.project_id, seen, named, is_known, held(lease) if lease else None)


def _ids_in(project_id: ProjectId) -> dict[str, str]:
    """Returns the IDs that the project has for vendors of the catalogue, because the runtime may use other ones.

    Of several, this is one that a website reported or that is decided on, and of these the catalogue's own.
    """
    own, ids = catalogue().vendors, dict[str, str]()

    def rank(vendor: VendorItem) -> tuple[bool, bool]:
        return vendor.state is not None or vendor.revision is not None, vendor.vendor_id in own

    for vendor in sorted(list_all_vendors(project_id), key=rank):
        known = catalogue_vendor(vendor)
        if known is not None:
            ids[known.id] = vendor.vendor_id
    return ids


def catalogue_vendor(vendor: VendorItem) -> Vendor | None:
    """Returns the catalogue's vendor that matches the project's vendor, or None.

    The runtime may use other IDs than the catalogue. Then the vendor is found by domain: the ID, if it is one, or the
    domain from which the runtime saw the vendor loaded.
    """
    known, vendor_id = catalogue(), vendor.vendor_id
    return known.vendors.get(vendor_id) or known.vendor_of(vendor_id) or known.vendor_of(vendor.domain or "")

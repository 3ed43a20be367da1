"""Vendors in the code of a project's repositories, as the latest scan of each repository saw them.

A scan and a decision change different attributes of a vendor, so neither undoes the other. What another scan has stored
since the vendor was read is read again.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import batched
from typing import Any, Final, NamedTuple

from controlplane.findings.items import CodeUse, VendorPlace
from controlplane.findings.vendors import VendorItem, list_all_vendors
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.table import keys, leases
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Check, ConditionFailed, Delete, Leg, LegFailed, Unrecorded, Update, table
from controlplane.projects.store import UnknownProject

# A transaction has at most 100 legs and 4 MB.
_MOST_VENDORS: Final = 25
_MOST_REPOSITORIES: Final = 20


class FoundVendor(NamedTuple):
    """A vendor that a scan found. places: those that may be shown. Without any, the project doesn't learn of it."""

    name: str
    category: str
    places: tuple[VendorPlace, ...] = ()


def record_uses(
    project_id: ProjectId,
    scan: CodeUse,
    found: Mapping[str, FoundVendor],
    covers: Callable[[str], bool],
    held: Check | None = None,
) -> None:
    """Stores for the project which vendors a scan found, by ID, and which it no longer found. Can be repeated.

    scan: the scan, without places. covers: whether the scan would have found a vendor in a file. A vendor is gone if
    it would have in all of its places. held: checks the lease of the scan's worker.
    Keeps what a later scan has stored. Raises leases.LeaseLost, and UnknownProject if the project was deleted.
    """
    around: dict[str, Leg] = {"project": Check(keys.project(*project_id.location), "attribute_exists(pk)")}
    if held is not None:
        around["scan"] = held

    def record() -> None:
        stored = {vendor.vendor_id: vendor for vendor in list_all_vendors(project_id)}
        changes = {}
        for vendor_id in {**stored, **found}:
            vendor = stored.get(vendor_id) or VendorItem(project_id=project_id, vendor_id=vendor_id)
            use = _current(vendor, scan, found.get(vendor_id), covers)
            if use is not None:
                changes[vendor_id] = _leg(vendor, use, found.get(vendor_id))
        for batch in batched(changes.items(), _MOST_VENDORS, strict=False):
            try:
                table.transact({**around, **dict(batch)}, Unrecorded.PUBLICATION)
            except LegFailed as failure:
                errors = {"project": UnknownProject, "scan": leases.LeaseLost}
                raise failure.mapped(errors, WriteConflict) from None

    retry_on_conflict(record, "the vendors")


def _current(
    vendor: VendorItem, scan: CodeUse, found: FoundVendor | None, covers: Callable[[str], bool]
) -> CodeUse | None:
    """Returns the vendor's use as of the scan, or None to keep the stored one."""
    before = _use_of(vendor, scan.repository_id)
    if before is not None and before.scanned_at > scan.scanned_at:
        return None
    if found is not None:
        use = scan._replace(places=found.places)
        return use if found.places and use != before else None
    is_gone = before is not None and before.places and all(covers(place.path) for place in before.places)
    return scan if is_gone else None


def _use_of(vendor: VendorItem, repository_id: str) -> CodeUse | None:
    return next((use for use in vendor.code if use.repository_id == repository_id), None)


def _leg(vendor: VendorItem, use: CodeUse, found: FoundVendor | None) -> Update:
    """Returns the leg that replaces the vendor's use in the repository, on the condition that no other has changed."""
    others = [it for it in vendor.code if it.repository_id != use.repository_id]
    values: dict[str, Any] = {
        "vendorId": vendor.vendor_id,
        "projectId": vendor.project_id,
        "code": [to_map(it) for it in (use, *others)][:_MOST_REPOSITORIES],
    }
    change = set_expression(values)
    if found is not None:
        absent = {"name": found.name, "category": found.category, "reviewState": "suggested"}
        change += "".join(f", #{name} = if_not_exists(#{name}, :{name})" for name in absent)
        values |= absent
    when, read = _unchanged(vendor)
    return Update(_key(vendor), change, when, {**values, **read})


def _key(vendor: VendorItem) -> keys.Key:
    return keys.vendor(*ProjectId.stored(vendor.project_id).location, vendor.vendor_id)


def _unchanged(vendor: VendorItem) -> tuple[str, dict[str, Any]]:
    """Returns the condition, and its values, that no scan has changed the vendor since it was read."""
    if not vendor.code:
        return "attribute_not_exists(#code)", {}
    return "#code = :readCode", {"readCode": [to_map(use) for use in vendor.code]}


def forget_uses(vendor: VendorItem, repository_id: RepositoryId) -> None:
    """Removes the repository from the vendor, and the vendor if it was seen nowhere else and isn't decided on.

    Does nothing if the vendor has changed since it was read.
    """
    if _use_of(vendor, repository_id) is None:
        return
    kept = [to_map(use) for use in vendor.code if use.repository_id != repository_id]
    key, (when, read) = _key(vendor), _unchanged(vendor)
    with suppress(ConditionFailed):
        if kept:
            table.update(Update(key, "SET #code = :code", when, {"code": kept, **read}), Unrecorded.CLEANUP)
        elif vendor.state is None and vendor.inbox_item_id is None:
            alone = f"{when} AND attribute_not_exists(#state) AND attribute_not_exists(#inboxItemId)"
            table.delete(Delete(key, alone, read), Unrecorded.CLEANUP)
        else:
            table.update(Update(key, "REMOVE #code", when, read), Unrecorded.CLEANUP)

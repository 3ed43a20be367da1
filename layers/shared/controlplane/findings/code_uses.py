"""Vendors in the code of a project's repositories, as the latest scan of each repository saw them.

A scan and a decision change different attributes of a vendor, so neither undoes the other. If another scan has
changed the vendor since it was read, it is read again.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
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
from controlplane.projects.changes import vendors_leg
from controlplane.projects.store import find_project, get_project

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

    scan: the scan, without places.
    covers: returns whether the scan knows all vendors in the file at a path, even if the file was deleted. A vendor
    that the scan didn't find is gone if the scan covers all of the vendor's places. Without a place in any repository,
    it leaves the public configuration, unless a website or a decision keeps it there.
    held: checks the lease of the scan's worker.
    Keeps what a later scan has stored. Raises leases.LeaseLost, and UnknownProject if the project was deleted.
    """
    around: dict[str, Leg] = {} if held is None else {"scan": held}

    def record() -> None:
        project = get_project(project_id)  # before its vendors, so that the condition on it covers them
        stored = {vendor.vendor_id: vendor for vendor in list_all_vendors(project_id)}
        changes: dict[str, tuple[Update, VendorItem]] = {}
        for vendor_id in {**stored, **found}:
            vendor = stored.get(vendor_id) or VendorItem(project_id=project_id, vendor_id=vendor_id)
            use = _current(vendor, scan, found.get(vendor_id), covers)
            if use is not None:
                named = _named(vendor, found.get(vendor_id))
                changes[vendor_id] = _leg(vendor, use, named), replace(named, code=_uses(vendor, use))
        for batch in batched(changes.items(), _MOST_VENDORS, strict=False):
            changed = [vendor for _, (_, vendor) in batch]
            after = project.with_vendors(*(it.configured for it in changed if it.is_configured))
            after = after.without_vendors(*(it.vendor_id for it in changed if not it.is_configured))
            legs: dict[str, Leg] = {**around, "project": vendors_leg(project, after)}
            legs |= {vendor_id: leg for vendor_id, (leg, _) in batch}
            table.transact(legs, Unrecorded.PUBLICATION, {"scan": leases.LeaseLost}, WriteConflict)
            project = after

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


def _uses(vendor: VendorItem, use: CodeUse) -> tuple[CodeUse, ...]:
    """Returns the vendor's uses with that of one repository replaced."""
    others = (it for it in vendor.code if it.repository_id != use.repository_id)
    return (use, *others)[:_MOST_REPOSITORIES]


def _named(vendor: VendorItem, found: FoundVendor | None) -> VendorItem:
    """Returns the vendor with the name and the category that it lacks."""
    if found is None:
        return vendor
    return replace(vendor, name=vendor.name or found.name, category=vendor.category or found.category)


def _leg(vendor: VendorItem, use: CodeUse, named: VendorItem) -> Update:
    """Returns the leg that replaces the vendor's use in the repository, on the condition that no other has changed."""
    values: dict[str, Any] = {
        "vendorId": vendor.vendor_id,
        "projectId": vendor.project_id,
        "code": [to_map(it) for it in _uses(vendor, use)],
    }
    if named.name != vendor.name:
        values["name"] = named.name
    if named.category != vendor.category:
        values["category"] = named.category
    change = set_expression(values)
    if named is not vendor:
        change += ", #reviewState = if_not_exists(#reviewState, :suggested)"
        values["suggested"] = "suggested"
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

    Without a place in another repository, it leaves the public configuration, like one that is gone (`record_uses`).
    Does nothing if the vendor has changed since it was read.
    """
    if _use_of(vendor, repository_id) is None:
        return
    left = replace(vendor, code=tuple(use for use in vendor.code if use.repository_id != repository_id))
    kept = {"code": [to_map(use) for use in left.code]} if left.code else {}
    change = set_expression(kept) if kept else "REMOVE #code"
    key, (when, read) = _key(vendor), _unchanged(vendor)
    if left.is_configured:
        with suppress(ConditionFailed):
            table.update(Update(key, change, when, {**kept, **read}), Unrecorded.CLEANUP)
        return
    alone = f"{when} AND attribute_not_exists(#state) AND attribute_not_exists(#revision)"
    _withdraw(vendor, Update(key, change, alone, {**kept, **read}) if kept else Delete(key, alone, read))


def _withdraw(vendor: VendorItem, leg: Leg) -> None:
    """Changes or deletes the vendor, and removes it from its project's list, unless it has changed."""

    def withdraw() -> None:
        project = find_project(ProjectId.stored(vendor.project_id))
        legs: dict[str, Leg] = {"vendor": leg}
        if project is not None:
            legs["project"] = vendors_leg(project, project.without_vendors(vendor.vendor_id))
        try:
            table.transact(legs, Unrecorded.CLEANUP)
        except LegFailed as failure:
            if failure.leg == "project":
                raise WriteConflict from None

    retry_on_conflict(withdraw, "the project")

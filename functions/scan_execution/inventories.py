"""Turns the inventory that the analysis takes into the one that is stored."""

from controlplane.scans.inventories import Inventory, Language, Technology, UsedVendor, VendorPackage
from openassent_analysis.inventory import inventories


def to_stored(inventory: inventories.Inventory) -> Inventory:
    return Inventory(
        files=inventory.files,
        languages=tuple(Language(*it) for it in inventory.languages),
        frameworks=tuple(Technology(*it) for it in inventory.frameworks),
        package_managers=tuple(Technology(*it) for it in inventory.package_managers),
        vendors=tuple(map(_vendor, inventory.vendors)),
        truncated=inventory.truncated,
    )


def _vendor(vendor: inventories.UsedVendor) -> UsedVendor:
    return UsedVendor(
        vendor_id=vendor.vendor_id,
        name=vendor.name,
        category=vendor.category,
        packages=tuple(VendorPackage(*it) for it in vendor.packages),
        hosts=vendor.hosts,
        loading_files=vendor.loading_files,
        ungated_files=vendor.ungated_files,
    )

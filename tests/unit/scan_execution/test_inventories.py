"""The inventory of a scan, as it is stored."""

import json

from analysis_testing.in_process import inventory_of
from controlplane.platform.table.stored import to_map
from openassent_analysis.catalogue import catalogue
from openassent_analysis.findings import Loads
from openassent_analysis.inventory.stocktaking import MAX_PACKAGES, MAX_VENDORS, with_loads


def test_the_largest_inventory_fits_into_an_item():
    places = {f"{'é' * 99}{n}": False for n in range(9)}
    loads = {vendor: Loads(places, [f"{'a' * 240}{n}" for n in range(3)]) for vendor in catalogue().vendors}
    named = [it for it in catalogue().vendors.values() if it.packages][:90]
    manifests = {
        f"{'é' * 90}/{'é' * 87}{number}/package.json": json.dumps(
            {"dependencies": dict.fromkeys(vendor.packages, "1" * 60)}
        )
        for number, vendor in enumerate(named)
    }
    found = with_loads(inventory_of(manifests), loads)
    assert len(found.vendors) == MAX_VENDORS
    assert found.truncated
    # Those that a manifest names are kept.
    assert sum(bool(it.packages) for it in found.vendors) == len(named) == 90
    assert max(len(it.packages) for it in found.vendors) == MAX_PACKAGES
    assert len(json.dumps(to_map(found), ensure_ascii=False).encode()) < 320_000

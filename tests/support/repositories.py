"""Takes the inventory of small invented repositories, with the manifests parsed in the test's process."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from openassent_analysis import Limits
from openassent_analysis.inventory.inventories import Inventory
from openassent_analysis.inventory.listing import Listing
from openassent_analysis.inventory.stocktaking import take_inventory
from scan_execution.workspace import unpack
from tests.support.analysis import in_process
from tests.support.code_host import archive


def inventory_of(files: Mapping[str, str | bytes]) -> Inventory:
    """Returns the inventory of a repository, from its archive."""
    listing = Listing()
    with tempfile.TemporaryDirectory() as folder:
        unpacked = unpack(iter([archive(files)]), Path(folder), reason_to_skip=listing.take)
        return take_inventory(listing, unpacked.files, Path(folder), in_process(Limits()))

"""Inventories: the languages, packages, and vendors of a scanned repository.

Each is an item of its own: in the scan's item, it would multiply the price of lists and of each progress report. Unless
the scan's access is `full`, only vendors that manifests name are shown, because others would reveal a locked finding.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from controlplane.platform.core.ids import ScanId
from controlplane.platform.table import keys
from controlplane.platform.table.stored import read_map, to_map
from controlplane.platform.table.table import Put
from controlplane.scans.items import ScanItem


class Language(NamedTuple):
    """A language, with the number and total size of its files."""

    name: str
    files: int
    bytes: int


class Technology(NamedTuple):
    """A framework or a package manager: its version as a manifest names it, if one does, and the file that shows it."""

    id: str
    name: str
    version: str | None
    path: str


class VendorPackage(NamedTuple):
    """A package of a vendor in a manifest, with its version as written, if there is one."""

    name: str
    version: str | None
    path: str


class UsedVendor(NamedTuple):
    """A vendor that manifests name or that the code loads.

    hosts: some of the hosts that it is loaded from. loading_files: None until the code has been analyzed, or if the
    analysis doesn't look for vendors of its category. ungated_files: those of them that load it without consent.
    """

    id: str
    name: str
    category: str
    packages: tuple[VendorPackage, ...] = ()
    hosts: tuple[str, ...] = ()
    loading_files: int | None = None
    ungated_files: int | None = None


class Inventory(NamedTuple):
    """The contents of a repository. `truncated` if it has more manifests or vendors than are listed."""

    files: int
    languages: tuple[Language, ...] = ()
    frameworks: tuple[Technology, ...] = ()
    package_managers: tuple[Technology, ...] = ()
    vendors: tuple[UsedVendor, ...] = ()
    truncated: bool = False

    def readable(self, scan: ScanItem) -> Self:
        """Returns the readable part. Unless the access is full, vendors that the analysis found would reveal findings.

        That is: vendors that only the code loads, and from which hosts and in how many files vendors are loaded.
        """
        if scan.access == "full":
            return self
        named = tuple(
            it._replace(hosts=(), loading_files=None, ungated_files=None) for it in self.vendors if it.packages
        )
        return self._replace(vendors=named)


def stored_leg(scan_id: ScanId, inventory: Any) -> Put:
    """Returns the leg that stores the inventory, which has the fields of `Inventory`."""
    return Put({**keys.scan_inventory(scan_id)._asdict(), **to_map(inventory)})


class ScanWithInventory(NamedTuple):
    """A scan and, once its stage `inventory` is completed, its inventory."""

    scan: ScanItem
    inventory: Inventory | None

    @classmethod
    def from_items(cls, scan: Mapping[str, Any], inventory: Mapping[str, Any] | None) -> Self:
        return cls(ScanItem.from_item(scan), read_map(Inventory, inventory) if inventory else None)

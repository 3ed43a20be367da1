"""Inventories: the languages, packages, and vendors of a scanned repository.

Each is an item of its own: in the scan's item, it would multiply the price of lists and of each progress report. Unless
the scan's access is `full`, only vendors that manifests name are shown, because others would reveal a locked finding.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from controlplane.platform.core.ids import ScanId
from controlplane.platform.table import keys
from controlplane.platform.table.codec import present
from controlplane.scans.items import ScanItem


class Language(NamedTuple):
    """A language, with the number and total size of its files."""

    name: str
    files: int
    size_bytes: int

    def to_item(self) -> dict[str, Any]:
        return {"name": self.name, "files": self.files, "bytes": self.size_bytes}

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(item["name"], item["files"], item["bytes"])


class Technology(NamedTuple):
    """A framework or a package manager: its version as a manifest names it, if one does, and the file that shows it."""

    technology_id: str
    name: str
    version: str | None
    path: str

    def to_item(self) -> dict[str, Any]:
        return {"id": self.technology_id, "name": self.name, "path": self.path, **present(version=self.version)}

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(item["id"], item["name"], item.get("version"), item["path"])


class VendorPackage(NamedTuple):
    """A package of a vendor in a manifest, with its version as written, if there is one."""

    name: str
    version: str | None
    path: str

    def to_item(self) -> dict[str, Any]:
        return {"name": self.name, "path": self.path, **present(version=self.version)}

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(item["name"], item.get("version"), item["path"])


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedVendor:
    """A vendor that manifests name or that the code loads.

    hosts: some of the hosts that it is loaded from. loading_files: None until the code has been analyzed, or if the
    analysis doesn't look for vendors of its category. ungated_files: those of them that load it without consent.
    """

    vendor_id: str
    name: str
    category: str
    packages: tuple[VendorPackage, ...] = ()
    hosts: tuple[str, ...] = ()
    loading_files: int | None = None
    ungated_files: int | None = None

    def to_item(self) -> dict[str, Any]:
        return {
            "id": self.vendor_id,
            "name": self.name,
            "category": self.category,
            "packages": [package.to_item() for package in self.packages],
            "hosts": self.hosts,
            **present(loadingFiles=self.loading_files, ungatedFiles=self.ungated_files),
        }

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            vendor_id=item["id"],
            name=item["name"],
            category=item["category"],
            packages=tuple(map(VendorPackage.from_item, item["packages"])),
            hosts=tuple(item["hosts"]),
            loading_files=item.get("loadingFiles"),
            ungated_files=item.get("ungatedFiles"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
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
            replace(it, hosts=(), loading_files=None, ungated_files=None) for it in self.vendors if it.packages
        )
        return replace(self, vendors=named)

    def to_item(self, scan_id: ScanId) -> dict[str, Any]:
        return {
            **keys.scan_inventory(scan_id)._asdict(),
            "files": self.files,
            "languages": [language.to_item() for language in self.languages],
            "frameworks": [framework.to_item() for framework in self.frameworks],
            "packageManagers": [manager.to_item() for manager in self.package_managers],
            "vendors": [vendor.to_item() for vendor in self.vendors],
            "truncated": self.truncated,
        }

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            files=item["files"],
            languages=tuple(map(Language.from_item, item["languages"])),
            frameworks=tuple(map(Technology.from_item, item["frameworks"])),
            package_managers=tuple(map(Technology.from_item, item["packageManagers"])),
            vendors=tuple(map(UsedVendor.from_item, item["vendors"])),
            truncated=item["truncated"],
        )


class ScanWithInventory(NamedTuple):
    """A scan and, once its stage `inventory` is completed, its inventory."""

    scan: ScanItem
    inventory: Inventory | None

    @classmethod
    def from_items(cls, scan: Mapping[str, Any], inventory: Mapping[str, Any] | None) -> Self:
        return cls(ScanItem.from_item(scan), Inventory.from_item(inventory) if inventory else None)

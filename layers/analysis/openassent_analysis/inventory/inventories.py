"""The inventory of a folder."""

from __future__ import annotations

from typing import NamedTuple


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
    """A package of a vendor in a manifest, with its version as written, if there is one.

    newest: the version that the lock file names, or the newest that the manifest allows, such as `1.x`. Only for npm.
    """

    name: str
    version: str | None
    path: str
    newest: str | None = None


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
    """The contents of a folder. `truncated` if it has more manifests or vendors than are listed."""

    files: int
    languages: tuple[Language, ...] = ()
    frameworks: tuple[Technology, ...] = ()
    package_managers: tuple[Technology, ...] = ()
    vendors: tuple[UsedVendor, ...] = ()
    truncated: bool = False

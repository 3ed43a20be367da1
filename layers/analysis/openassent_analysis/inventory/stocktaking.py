"""Takes the inventory: combines the listing of the archive, the manifests, and the loads that the analysis found.

Must not parse anything: `examine` reads the manifests in another process, whose answers name ids of our own data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import cache
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

from openassent_analysis.catalogue import Vendor, catalogue
from openassent_analysis.files import Skipped, read
from openassent_analysis.findings import Loads
from openassent_analysis.inventory import manifests
from openassent_analysis.inventory.listing import MAX_LOCK_FILE_BYTES, Listing
from openassent_analysis.inventory.technologies import DEFAULT, FRAMEWORK, PACKAGE_MANAGER, Sign, technologies
from openassent_analysis.libraries import newest_allowed, show_newest
from openassent_analysis.report import Examine, Part, Request
from openassent_analysis.rules import rules

MAX_VENDORS: Final = 100
MAX_PACKAGES: Final = 3
MAX_PLACES: Final = 5
MAX_SECONDS: Final = 20.0
_MAX_TOTAL_BYTES: Final = 32 * 1024**2
# An inventory is one item of a table, so it leaves out longer paths.
_MAX_PATH_BYTES: Final = 200
_FIRST: Final = (False, None, True)


def take_inventory(listing: Listing, files: int, folder: Path, examine: Examine) -> Inventory:
    """Returns the inventory of an unpacked archive of so many files, with the vendors that its manifests name."""
    stock = _Stock()
    for request, outcome in examine(_requests(listing, folder), time.monotonic() + MAX_SECONDS):
        if isinstance(outcome, Skipped):
            listing.truncated |= str(outcome) == "out of time"
            continue
        for part in outcome.parts:
            stock.add(part, request.path)
    for sign, path in sorted(listing.signs.items(), key=lambda entry: entry[0].kind == DEFAULT):
        stock.add_sign(sign, path)
    languages = [Language(name, count.files, count.bytes) for name, count in listing.languages.items()]
    return Inventory(
        files=files,
        languages=tuple(sorted(languages, key=lambda it: (-it.files, -it.bytes, it.name))),
        frameworks=stock.technologies(FRAMEWORK),
        package_managers=stock.technologies(PACKAGE_MANAGER),
        vendors=tuple(
            sorted(map(stock.resolved, stock.vendors.values()), key=lambda it: it.name.lower())[:MAX_VENDORS]
        ),
        truncated=listing.truncated or len(stock.vendors) > MAX_VENDORS,
    )


def with_loads(inventory: Inventory, loads: Mapping[str, Loads]) -> Inventory:
    """Returns the inventory with the files that load each vendor, after the analysis."""
    looked_for = _looked_for()
    vendors = {
        it.id: it._replace(loading_files=0, ungated_files=0) if it.category in looked_for else it
        for it in inventory.vendors
    }
    for vendor_id, found in loads.items():
        used = vendors.get(vendor_id) or _used(catalogue().vendors[vendor_id])
        vendors[vendor_id] = used._replace(
            hosts=tuple(found.hosts),
            loading_files=found.files,
            ungated_files=found.ungated,
            places=_places(found, is_judged=used.category in looked_for),
        )
    # Keeps the vendors of the manifests if there are too many.
    kept = sorted(vendors.values(), key=lambda it: not it.packages)[:MAX_VENDORS]
    return inventory._replace(
        vendors=tuple(sorted(kept, key=lambda it: it.name.lower())),
        truncated=inventory.truncated or len(vendors) > MAX_VENDORS,
    )


def _places(found: Loads, *, is_judged: bool) -> tuple[VendorPlace, ...]:
    """Returns some of the files that load a vendor, those that don't wait for consent first."""
    short = [place for place in found.places.items() if len(place[0].encode()) <= _MAX_PATH_BYTES]
    kept = sorted(short, key=lambda place: (_FIRST.index(place[1]), place[0]))[:MAX_PLACES]
    return tuple(VendorPlace(path, gated if is_judged else None) for path, gated in kept)


@cache
def _looked_for() -> frozenset[str]:
    """Returns the categories of vendors whose loading the analysis looks for, so that 0 files means something."""
    trackers = [rule for rule in rules() if rule.category == "trackers"]
    return frozenset(it for rule in trackers for it in (*rule.vendor_categories, *rule.package_categories))


def _requests(listing: Listing, folder: Path) -> Iterator[Request]:
    total = 0
    for path in listing.manifests():
        try:
            content = read(str(folder / path), MAX_LOCK_FILE_BYTES)
        except Skipped:
            continue
        total += len(content)
        if total > _MAX_TOTAL_BYTES:
            listing.truncated = True
            return
        yield Request(path, manifests.LANGUAGE, content)


def _used(vendor: Vendor) -> UsedVendor:
    return UsedVendor(id=vendor.id, name=vendor.name, category=vendor.category)


def _newest_version(package: VendorPackage) -> tuple[float, ...]:
    """Returns a sort key: unknown versions come last."""
    return newest_allowed(package.newest or "") or (inf,)


class _Stock:
    """Everything found so far. The manifests come first, nearest to the root first."""

    def __init__(self) -> None:
        self.vendors: dict[str, UsedVendor] = {}
        self._technologies: dict[Sign, Technology] = {}
        # By vendor and package: each manifest that names it.
        self._packages: dict[str, dict[str, list[VendorPackage]]] = {}
        # By package: the folder of each lock file and the version, nearest to the root first.
        self._locked: dict[str, list[tuple[str, str]]] = {}

    def technologies(self, kind: str) -> tuple[Technology, ...]:
        found = (it for sign, it in self._technologies.items() if sign.kind == kind)
        return tuple(sorted(found, key=lambda it: it.name.lower()))

    def add(self, part: Part, path: str) -> None:
        """Adds a part of a manifest. Ignores one that our data doesn't contain."""
        if part.kind in {FRAMEWORK, PACKAGE_MANAGER}:
            self._add_technology(Sign(part.kind, part.id), part.version or None, path)
        elif part.kind == manifests.LOCKED:
            self._locked.setdefault(part.package, []).append((path.rpartition("/")[0], part.version))
        elif (vendor := catalogue().vendors.get(part.id)) and part.package in vendor.packages:
            self.vendors.setdefault(vendor.id, _used(vendor))
            named = self._packages.setdefault(vendor.id, {})
            if part.package in named or len(named) < MAX_PACKAGES:
                named.setdefault(part.package, []).append(VendorPackage(part.package, part.version or None, path))

    def resolved(self, used: UsedVendor) -> UsedVendor:
        """Returns the vendor with its packages: of each, the manifest whose newest version is the lowest.

        The newest version of an npm package is that of the nearest lock file, or as allowed.
        """
        named = self._packages[used.id].values()
        return used._replace(packages=tuple(min(map(self._resolve, it), key=_newest_version) for it in named))

    def _resolve(self, package: VendorPackage) -> VendorPackage:
        folder, _, name = package.path.rpartition("/")
        if name != "package.json":
            return package
        locked = [
            it for above, it in self._locked.get(package.name, ()) if not above or f"{folder}/".startswith(f"{above}/")
        ]
        return package._replace(newest=show_newest(locked[-1] if locked else package.version or ""))

    def add_sign(self, sign: Sign, path: str) -> None:
        """Adds a sign that a file's name gives. Add the signs of default package managers after all others."""
        if sign.kind == DEFAULT:
            managers = technologies().package_managers
            registry = managers[sign.id].registry
            if any(managers[it.id].registry == registry for it in self._technologies if it.kind == PACKAGE_MANAGER):
                return
            sign = Sign(PACKAGE_MANAGER, sign.id)
        self._add_technology(sign, None, path)

    def _add_technology(self, sign: Sign, version: str | None, path: str) -> None:
        known = technologies().frameworks if sign.kind == FRAMEWORK else technologies().package_managers
        entry, before = known.get(sign.id), self._technologies.get(sign)
        if entry is not None and (before is None or (version and not before.version)):
            self._technologies[sign] = Technology(entry.id, entry.name, version, path)


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


class VendorPlace(NamedTuple):
    """A file that loads a vendor. gated: whether it waits for consent there; None if the analysis can't tell."""

    path: str
    gated: bool | None = None


class UsedVendor(NamedTuple):
    """A vendor that manifests name or that the code loads.

    hosts, places: some of the hosts that it is loaded from, and of the files that load it. loading_files: None until
    the code has been analyzed, or if the analysis doesn't look for vendors of its category. ungated_files: those of
    them that load it without consent.
    """

    id: str
    name: str
    category: str
    packages: tuple[VendorPackage, ...] = ()
    hosts: tuple[str, ...] = ()
    loading_files: int | None = None
    ungated_files: int | None = None
    places: tuple[VendorPlace, ...] = ()


class Inventory(NamedTuple):
    """The contents of a folder. `truncated` if it has more manifests or vendors than are listed."""

    files: int
    languages: tuple[Language, ...] = ()
    frameworks: tuple[Technology, ...] = ()
    package_managers: tuple[Technology, ...] = ()
    vendors: tuple[UsedVendor, ...] = ()
    truncated: bool = False

"""The catalogue of vendors: which third party serves an address, and for what purpose.

Addresses are looked up by host, longest name first, never by searching them for the vendor's name. So
`google-analytics.com.example` and `not-google-analytics.com` don't match any vendor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from scan_execution.analysis.reading import load_yaml

VENDORS: Final = Path(__file__).parents[1] / "vendors.yaml"

# A delimiter must follow the host. A later `@` means that this was a user name, and the host comes after it.
_ADDRESS: Final = re.compile(
    r"//((?:[a-z0-9_-]+\.)+[a-z]{2,24})\.?(?=[/?#:\"'`\s<>\\),;&${]|$)(?!:[^/\s\"'`]*@)(?::\d{1,5})?(/[^\s\"'`<>\\)$]{0,200})?",
    re.IGNORECASE,
)
# DNS names aren't longer (RFC 1035 section 2.3.4). Bounds the lookups: there is one for each suffix of a host.
_MAX_HOST: Final = 254
_IMPORT: Final = re.compile(r"""\b(?:from|import|require\s*\(|import\s*\()\s*["']([^"'\n]{2,80})["']""")


@dataclass(frozen=True, slots=True)
class Vendor:
    id: str
    name: str
    category: str
    domains: tuple[str, ...]
    packages: tuple[str, ...] = ()


class Catalogue:
    """All vendors, indexed by host and by package."""

    def __init__(self, vendors: Iterable[Vendor]) -> None:
        self.vendors: Final = {vendor.id: vendor for vendor in vendors}
        self._by_host: Final[dict[str, list[tuple[str, Vendor]]]] = {}
        self._by_package: Final[dict[str, Vendor]] = {}
        for vendor in self.vendors.values():
            for pattern in vendor.domains:
                host, slash, path = pattern.partition("/")
                self._by_host.setdefault(host, []).append((slash + path, vendor))
            for package in vendor.packages:
                self._by_package[package] = vendor
        for paths in self._by_host.values():
            paths.sort(key=lambda entry: -len(entry[0]))

    def vendor_of(self, host: str, path: str = "") -> Vendor | None:
        """Returns the vendor of an address, or None if the catalogue doesn't contain it."""
        if len(host) > _MAX_HOST:
            return None
        labels = host.lower().rstrip(".").split(".")
        for start in range(len(labels) - 1):
            for prefix, vendor in self._by_host.get(".".join(labels[start:]), ()):
                if path.startswith(prefix):
                    return vendor
        return None

    def addresses_in(self, text: str) -> Iterator[tuple[int, Vendor]]:
        """Yields the vendor of each known address in a text, with the position of its `//`."""
        for match in _ADDRESS.finditer(text):
            if vendor := self.vendor_of(match[1], match[2] or ""):
                yield match.start(), vendor

    def first_in(self, text: str) -> Vendor | None:
        """Returns the vendor of the first address in a text. Ignores addresses in the query of that address."""
        match = _ADDRESS.search(text)
        return self.vendor_of(match[1], match[2] or "") if match else None

    def host_at(self, text: str, start: int = 0) -> str:
        """Returns the host of the first address from a position on, or an empty string."""
        match = _ADDRESS.search(text, start)
        return match[1].lower() if match else ""

    def packages_in(self, text: str) -> dict[str, Vendor]:
        """Returns the vendors of the packages that a source file imports, by package name."""
        found = {}
        for match in _IMPORT.finditer(text):
            name = match[1]
            while name:
                if vendor := self._by_package.get(name):
                    found[name] = vendor
                    break
                name = name.rpartition("/")[0]
        return found

    def package(self, name: str) -> Vendor | None:
        return self._by_package.get(name)


def read_vendors(document: dict[str, list[dict[str, Any]]]) -> Iterator[Vendor]:
    for category, entries in document.items():
        for entry in entries:
            yield Vendor(
                entry["id"], entry["name"], category, tuple(entry["domains"]), tuple(entry.get("packages", ()))
            )


@cache
def catalogue() -> Catalogue:
    """Returns the shipped catalogue, which is read once."""
    return Catalogue(read_vendors(load_yaml(VENDORS)))

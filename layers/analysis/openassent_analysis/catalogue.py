"""The catalogue of vendors: the third party that serves an address, and its purpose.

Our own vendors (vendors.yaml) win over the entities of third-party-web (third-parties.json). An entity is one of our
vendors if it has its id, its name, or, for a tracker, one of its hosts. It then only adds hosts.

Addresses are looked up by host, longest name first, never by searching them for the vendor's name. So
`google-analytics.com.example` and `not-google-analytics.com` don't match any vendor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from openassent_analysis.reading import load_yaml, resource
from openassent_analysis.vocabulary import Names, Vocabulary

VENDORS: Final = Path(__file__).with_name("resources") / "vendors.yaml"
# Generated from third-party-web by scripts/vendors.py.
THIRD_PARTIES: Final = Path(__file__).with_name("resources") / "third-parties.json"
NO_TRACKERS: Final = frozenset({"other", "cdn"})
CALLS: Final = Path(__file__).with_name("resources") / "vendor-calls.yaml"

# Facebook serves its scripts in each language.
_LOCALE: Final = re.compile(r"^/[a-z]{2}_[A-Z]{2}/(?=(?:fbevents|sdk)\b)")
# A delimiter must follow the host. A later `@` means that this was a user name, and the host comes after it.
_ADDRESS: Final = re.compile(
    r"//((?:[a-z0-9_-]+\.)+[a-z]{2,24})\.?(?=[/?#:\"'`\s<>\\),;&${]|$)(?!:[^/\s\"'`]*@)(?::\d{1,5})?(/[^\s\"'`<>\\)$]{0,200})?",
    re.IGNORECASE,
)
# DNS names aren't longer (RFC 1035 section 2.3.4). Bounds the lookups: there is one for each suffix of a host.
_MAX_HOST: Final = 254
# A host name, or the end of one, at the beginning of a string or of its part after a placeholder.
_NAMED_HOST: Final = re.compile(
    r"""["'`}>/]\.?((?:[a-z0-9_-]++\.)++[a-z]{2,24})(?![\w.-])(/[^\s"'`<>\\)$]{0,200})?""", re.IGNORECASE
)
# The package in an address that a module is imported from: https://esm.sh/posthog-js@1
_MIRRORED: Final = re.compile(
    r"https?://(?:(?:esm\.sh|esm\.run|cdn\.skypack\.dev|unpkg\.com|jspm\.dev)/|cdn\.jsdelivr\.net/npm/|ga\.jspm\.io/npm:)"
    r"(?:v\d+/)?((?:@[\w.-]{1,60}/)?[\w.-]{1,60})"
)
_IMPORT: Final = re.compile(r"""\b(?:from|import|require\s*\(|import\s*\()\s*["'`]([^"'`\n]{2,80})["'`]""")


@dataclass(frozen=True, slots=True)
class Vendor:
    id: str
    name: str
    category: str
    domains: tuple[str, ...]
    packages: tuple[str, ...] = ()
    # What it does to a visitor, if its category's words don't fit: the rest of a sentence about it.
    does: str = ""
    # A finding that it is loaded is at most as severe. Empty if its category decides.
    severity: str = ""


class Catalogue:
    """All vendors, indexed by host and by package."""

    def __init__(
        self,
        vendors: Iterable[Vendor],
        general: Iterable[str] = (),
        packages: Mapping[str, Iterable[str]] | None = None,
        exports: Mapping[str, Mapping[str, str | None]] | None = None,
        modules: Mapping[str, Iterable[str]] | None = None,
        *,
        unjudged: Iterable[str] = (),
    ) -> None:
        """`packages` are further ones by vendor id; `exports` the vendors of single exports, None if it loads none.

        modules: the last words of addresses that vendors' code is imported from, by vendor id. unjudged: vendors whose
        scripts are as unknown as those of other hosts.
        """
        self.vendors = {vendor.id: vendor for vendor in vendors}
        self.general: Final = frozenset(general)
        self.unjudged: Final = frozenset(unjudged)
        self.exports: Final = {
            package: {name: self.vendors[vendor_id] if vendor_id else None for name, vendor_id in names.items()}
            for package, names in (exports or {}).items()
        }
        self._by_host: dict[str, list[tuple[str, Vendor]]] = {}
        self._by_package: dict[str, Vendor] = {}
        for vendor in self.vendors.values():
            for pattern in vendor.domains:
                host, slash, path = pattern.partition("/")
                self._by_host.setdefault(host, []).append((slash + path, vendor))
            for package in vendor.packages:
                self._by_package[package] = vendor
        for vendor_id, names in (packages or {}).items():
            for package in names:
                self._by_package.setdefault(package, self.vendors[vendor_id])
        self._by_module: Final = {
            name: self.vendors[vendor_id] for vendor_id, names in (modules or {}).items() for name in names
        }
        for paths in self._by_host.values():
            paths.sort(key=lambda entry: -len(entry[0]))

    def vendor_of(self, host: str, path: str = "") -> Vendor | None:
        """Returns the vendor of an address, or None if the catalogue doesn't contain it."""
        path = _LOCALE.sub("/en_US/", path, count=1)
        for suffix in suffixes(host.lower().rstrip(".")):
            for prefix, vendor in self._by_host.get(suffix, ()):
                if path.startswith(prefix):
                    return vendor
        return None

    def vendors_at(self, host: str) -> Iterator[Vendor]:
        """Yields the vendors that a host serves on any path."""
        for suffix in suffixes(host.lower()):
            yield from (vendor for _, vendor in self._by_host.get(suffix, ()))

    def knows(self, host: str) -> bool:
        """Returns whether the catalogue says what a host serves, also that it is no tracker."""
        return any(
            suffix in self.general or any(vendor.id not in self.unjudged for _, vendor in self._by_host.get(suffix, ()))
            for suffix in suffixes(host.lower().rstrip("."))
        )

    def addresses_in(self, text: str) -> Iterator[tuple[int, Vendor]]:
        """Yields the vendor of each known address in a text, with the position of its `//`."""
        for match in _ADDRESS.finditer(text):
            if vendor := self.vendor_of(match[1], match[2] or ""):
                yield match.start(), vendor

    def named_in(self, text: str) -> Iterator[Vendor]:
        """Yields the vendors of host names that are parts of addresses, for example `.disqus.com/embed.js`."""
        for match in _NAMED_HOST.finditer(text):
            if match[2] is None:
                yield from self.vendors_at(match[1])
            elif vendor := self.vendor_of(match[1], match[2]):
                yield vendor

    def first_in(self, text: str) -> Vendor | None:
        """Returns the vendor of the first address in a text. Ignores addresses in the query of that address."""
        match = _ADDRESS.search(text)
        return self.vendor_of(match[1], match[2] or "") if match else None

    def host_at(self, text: str, start: int = 0) -> str:
        """Returns the host of the first address from a position on, or an empty string."""
        match = _ADDRESS.search(text, start)
        return match[1].lower() if match else ""

    @cached_property
    def _hosts(self) -> Names:
        return Names(self._by_host)

    @cached_property
    def _imported(self) -> Names:
        return Names((*self._by_package, *self._by_module))

    def may_name_host(self, vocabulary: Vocabulary) -> bool:
        """Returns whether a text with these words may contain the name of a vendor's host."""
        return self._hosts.may_be_in(vocabulary.lower_runs)

    def may_import(self, vocabulary: Vocabulary) -> bool:
        """Returns whether a text with these words may import a vendor's package."""
        return self._imported.may_be_in(vocabulary.runs)

    def packages_in(self, text: str) -> dict[str, Vendor]:
        """Returns the vendors of the packages that a source file imports, by package name."""
        found = {}
        for match in _IMPORT.finditer(text):
            name = match[1]
            if "://" in name:
                mirrored = _MIRRORED.match(name)
                if vendor := self._by_module.get(name.rpartition("/")[2]) or (
                    self._by_package.get(mirrored[1]) if mirrored else None
                ):
                    found[name] = vendor
            while name:
                if vendor := self._by_package.get(name):
                    found[name] = vendor
                    break
                name = name.rpartition("/")[0]
        return found

    def with_own(self, vendors: Iterable[Vendor]) -> Catalogue:
        """Returns a catalogue that also has a project's own vendors. They win over others with the same ID or host."""
        extended = copy(self)
        extended.vendors = {**self.vendors}
        extended._by_host = {**self._by_host}
        extended._by_package = {**self._by_package}
        for made_from_them in ("_hosts", "_imported"):
            vars(extended).pop(made_from_them, None)
        for vendor in vendors:
            extended.vendors[vendor.id] = vendor
            extended._by_package |= dict.fromkeys(vendor.packages, vendor)
            for pattern in vendor.domains:
                host, slash, path = pattern.partition("/")
                others = [entry for entry in extended._by_host.get(host, ()) if entry[0] != slash + path]
                extended._by_host[host] = sorted([(slash + path, vendor), *others], key=lambda entry: -len(entry[0]))
        return extended

    def package(self, name: str) -> Vendor | None:
        return self._by_package.get(name)

    @property
    def packages(self) -> Mapping[str, Vendor]:
        return self._by_package


def suffixes(host: str) -> Iterator[str]:
    """Yields the host and every name above it, except the top-level domain. Yields nothing if it is no DNS name."""
    labels = host.split(".") if len(host) <= _MAX_HOST else []
    return (".".join(labels[start:]) for start in range(len(labels) - 1))


def read_vendors(
    document: dict[str, list[dict[str, Any]]], kinds: Mapping[str, Mapping[str, str]] | None = None
) -> Iterator[Vendor]:
    """kinds: what vendors of a kind do, and the severity of loading them."""
    for category, entries in document.items():
        for entry in entries:
            kind = (kinds or {})[entry["kind"]] if "kind" in entry else {}
            packages = tuple(entry.get("packages", ()))
            yield Vendor(entry["id"], entry["name"], category, tuple(entry["domains"]), packages, **kind)


def merged(ours: Iterable[Vendor], entities: Iterable[Vendor], general: Iterable[str]) -> Iterator[Vendor]:
    """Yields our vendors with the hosts of the entities that they are, then all other entities.

    An entity is one of our vendors if it has its id, its name, or, for a tracker, one of its hosts. No entity gets a
    host that one of our vendors has, or that is general, or that would hide paths of our vendors at the name above it.
    """
    vendors = {vendor.id: vendor for vendor in ours}
    named = {vendor.name: vendor.id for vendor in vendors.values()}
    # The vendor by each host that is all its own, and by each name at or above one of its hosts.
    whole: dict[str, str] = {}
    above: dict[str, str] = {}
    with_paths = set()
    for vendor in vendors.values():
        for pattern in vendor.domains:
            host, slash, _ = pattern.partition("/")
            if slash:
                with_paths.add(host)
            else:
                whole.setdefault(host, vendor.id)
            for suffix in suffixes(host):
                above.setdefault(suffix, vendor.id)
    hidden = frozenset(general)
    added: dict[str, list[str]] = {}
    others = []
    for entity in entities:
        owners = [next((whole[name] for name in suffixes(host) if name in whole), None) for host in entity.domains]
        same = entity.id if entity.id in vendors else named.get(entity.name)
        if same is None and entity.category not in NO_TRACKERS:
            below = (above.get(host) for host in entity.domains if host not in hidden)
            same = next(filter(None, (*owners, *below)), None)
        rest = tuple(
            host
            for host, owner in zip(entity.domains, owners, strict=True)
            if owner is None
            and hidden.isdisjoint(suffixes(host))
            and with_paths.isdisjoint(islice(suffixes(host), 1, None))
        )
        if same:
            added.setdefault(same, []).extend(rest)
        elif rest:
            others.append(entity if rest == entity.domains else replace(entity, domains=rest))
    for vendor in vendors.values():
        yield replace(vendor, domains=(*vendor.domains, *added[vendor.id])) if vendor.id in added else vendor
    yield from others


# The catalogue of the running scan, if its project has vendors of its own.
_extended: ContextVar[Catalogue | None] = ContextVar("extended", default=None)


def catalogue() -> Catalogue:
    """Returns the shipped catalogue, with the project's own vendors inside of `own_vendors`."""
    return _extended.get() or shipped_catalogue()


@contextmanager
def own_vendors(vendors: tuple[Vendor, ...]) -> Iterator[None]:
    """Adds a project's own vendors to the catalogue."""
    token = _extended.set(_with_own(vendors) if vendors else None)
    try:
        yield
    finally:
        _extended.reset(token)


@lru_cache(maxsize=1)
def _with_own(vendors: tuple[Vendor, ...]) -> Catalogue:
    return shipped_catalogue().with_own(vendors)


@cache
def shipped_catalogue() -> Catalogue:
    """Returns the shipped catalogue, which is read once."""
    document, more = load_yaml(VENDORS), load_yaml(CALLS)
    general, kinds = document.pop("general"), document.pop("kinds")
    entities = [
        Vendor(entry["id"], entry["name"], entry["category"], tuple(entry["domains"]))
        for entry in json.loads(THIRD_PARTIES.read_bytes())
    ]
    ours = list(read_vendors(document, kinds))
    judged = {vendor.id for vendor in ours}.union(resource("hosts")["harmless"])
    unjudged = {entity.id for entity in entities if entity.category == "other"} - judged
    vendors = merged(ours, entities, general)
    return Catalogue(vendors, general, more["packages"], more["exports"], more["modules"], unjudged=unjudged)

"""Fixes: edits of the project's own files that make a vendor wait for consent, or code to paste where none is safe.

A fix fits the project: it uses the project's consent library and its version, or without one c15t if the project has a
build, or else the vendor's own consent API. Edits keep the file's text: only what the library asks for changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Final

from openassent_analysis.catalogue import Vendor, catalogue
from openassent_analysis.consent_setup import set_up
from openassent_analysis.edits import (
    Change,
    Edit,
    Fix,
    Unsafe,
    blocked_frame,
    blocked_script,
    edits_of,
    insertion,
    removal_of_noscript,
    waiting_call,
)
from openassent_analysis.findings import Analysis, Finding
from openassent_analysis.inventory.stocktaking import Inventory
from openassent_analysis.places import CHILD, IMPORT, STATEMENT, TAG, VALUE, Place
from openassent_analysis.reading import load_yaml
from openassent_analysis.report import GOOGLE_TAGS

__all__ = ["Edit", "Fix", "Project", "consent_library_version", "fix_for"]

FIXES: Final = Path(__file__).with_name("resources") / "fixes.yaml"

# The category of findings about loading a vendor.
_LOADS: Final = "trackers"
_APPS: Final = frozenset({"react-native", "expo"})
_NPM: Final = frozenset({"npm", "yarn", "yarn-classic", "pnpm", "bun"})
_BUILT: Final = frozenset({".js", ".jsx", ".mjs", ".ts", ".tsx", ".mts", ".vue", ".svelte", ".astro"})
_SCRIPTS: Final = frozenset({".js", ".jsx", ".mjs", ".ts", ".tsx", ".mts"})
_JSX: Final = frozenset({".jsx", ".tsx"})
_ELEMENTS: Final = frozenset({TAG, CHILD, VALUE})
_FRAMES: Final = frozenset({"iframe", "img"})
_C15T: Final = "c15t"
_MAJOR: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"[^a-z0-9]")
# A player's address up to its query, which may have expressions of a template.
_VIMEO: Final = r"(?P<before>//player\.vimeo\.com/video/(?:[\w.-]|\{\{[^\"'{}]{1,80}\}\}){1,80})"
# Hits that code or a picture sends by itself. No consent mode of a tag holds them back.
_HIT: Final = re.compile(r"google-analytics\.com/(?:\w{1,2}/)?collect\b|(?<![\w.$])ua\(")
# What to look for in the address of a player, and what takes its place so that the player sets no cookies.
_PLAYERS: Final = {
    "youtube": [(re.compile(r"(?<=//)(?:www\.)?youtube\.com(?=/embed/)"), "www.youtube-nocookie.com")],
    "vimeo": [
        (re.compile(rf"{_VIMEO}(?=[\"'])"), r"\g<before>?dnt=1"),
        (re.compile(rf"{_VIMEO}\?(?=\w)"), r"\g<before>?dnt=1&"),
    ],
}


@dataclass(frozen=True, slots=True)
class Project:
    """The facts that decide which fix fits: ids of frameworks and package managers, and of the vendors in use.

    setups: how its files set a consent library up, see `setups`. versions: the major ones of vendors' packages. paths:
    those of its files.
    """

    technologies: frozenset[str] = frozenset()
    vendors: frozenset[str] = frozenset()
    setups: frozenset[str] = frozenset()
    versions: Mapping[str, str] | None = None
    paths: frozenset[str] = frozenset()

    @classmethod
    def of(cls, inventory: Inventory, analysis: Analysis | None = None) -> Project:
        found = (*inventory.frameworks, *inventory.package_managers)
        setups = sorted(analysis.setups if analysis else ())
        versions = {library: version for library, _, version in (it.partition(" ") for it in setups)}
        vendors = frozenset(it.id for it in inventory.vendors) | (versions.keys() & catalogue().vendors.keys())
        for vendor in inventory.vendors:
            if vendor.packages and (major := _MAJOR.search(vendor.packages[0].newest or "")):
                versions[vendor.id] = major[0]
        paths = frozenset(analysis.paths if analysis else ())
        return cls(frozenset(it.id for it in found), vendors, frozenset(setups), versions, paths)

    @property
    def names(self) -> list[str]:
        """The names of the consent library's categories and services."""
        return sorted(it.removeprefix("name ") for it in self.setups if it.startswith("name "))


def consent_library_version() -> str:
    """Returns the version of c15t that the fixes were checked with."""
    return str(_known()["c15t"]["checked"])


def fix_for(finding: Finding, project: Project) -> Fix | None:
    """Returns the fix of the finding, or None if none fits every project."""
    if finding.category != _LOADS or finding.vendor_id is None:
        return None
    vendor, path = catalogue().vendors[finding.vendor_id], PurePosixPath(finding.location.path)
    tag, known, manager = Tag(vendor, path, finding.places), _known(), _manager(project)
    if not (manager and "frame" in manager) and (player := _without_cookies(tag)):
        return player
    if manager:
        return _with_manager(manager, tag, project)
    if _HIT.search(finding.location.snippet):
        return None
    if vendor.id in GOOGLE_TAGS and "google-consent-mode" in project.setups and (defaults := _with_api(tag)).edits:
        return defaults
    built = path.suffix in _BUILT and not project.technologies.isdisjoint(_NPM)
    if _C15T not in project.vendors:
        if vendor.id in known["options"] and (not built or project.technologies & _APPS):
            return _with_options(known["options"][vendor.id], vendor)
        if project.technologies & _APPS:
            return None
        if not built:
            return _with_api(tag)
    exists = _C15T in project.vendors
    return set_up(vendor, path, tag.places, project.technologies, known["c15t"], exists=exists, taken=project.paths)


@dataclass(frozen=True, slots=True)
class Tag:
    """A vendor's tag: the file that it is in, and the places that an edit changes."""

    vendor: Vendor
    path: PurePosixPath
    places: Sequence[Place]

    def edits(self, changes: Iterable[Change]) -> tuple[Edit, ...]:
        """Returns edits of the tag's file, or () if none is safe."""
        if not self.places:
            return ()
        try:
            return edits_of(str(self.path), changes)
        except Unsafe:
            return ()

    @property
    def elements(self) -> list[Place]:
        return [it for it in self.places if it.kind in _ELEMENTS]

    @property
    def language(self) -> str:
        """The language of an edit."""
        return self.path.suffix.removeprefix(".") if self.path.suffix in _SCRIPTS else "html"


def _without_cookies(tag: Tag) -> Fix | None:
    """Returns a fix for a player: edits of its address, so that it sets no cookies until it is played, or code."""
    if tag.vendor.id not in _PLAYERS:
        return None
    changes = [
        Change(place, *found.span(), found.expand(instead))
        for place in tag.elements
        for pattern, instead in _PLAYERS[tag.vendor.id]
        if (found := pattern.search(place.text, *place.parts["tag"]))
    ]
    summary = f"The player of {tag.vendor.name} sets no cookies before it is played."
    if len(changes) == len(tag.elements) and (edits := tag.edits(changes)):
        return Fix(f"{summary} It still receives the visitor's address.", tag.language, "", (), edits)
    return Fix(summary, "html", _known()["embeds"][tag.vendor.id].strip()) if tag.language == "html" else None


def _manager(project: Project) -> Mapping[str, Any] | None:
    """Returns the consent library that the project uses, in its version."""
    versions = project.versions or {}
    for manager in _known()["managers"]:
        if manager["vendor"] in project.vendors and manager.get("version") in {None, versions.get(manager["vendor"])}:
            found: Mapping[str, Any] = manager
            return found
    return None


def _with_manager(manager: Mapping[str, Any], tag: Tag, project: Project) -> Fix:
    name, vendor = manager["name"], tag.vendor
    purpose, missing = _purpose(manager, vendor, project)
    if not missing and (edits := tag.edits(_blocked(tag, manager, purpose))):
        summary = f"{name} starts {vendor.name} once the visitor has agreed to `{purpose}`."
        if manager.get("version") == "2" and "page-scripts" not in project.setups:
            summary += " Set `page_scripts: true` in its options, too."
        return Fix(summary, tag.language, "", (), edits)
    summary = f"{name} starts {vendor.name} once the visitor has agreed."
    if missing:
        summary = f"{summary} Add {missing} `{purpose}` to its configuration first."
    starts = manager.get("starts")
    if starts and tag.path.suffix in _SCRIPTS - _JSX:
        condition = starts["condition"].replace("{PURPOSE}", purpose)
        events = ", ".join(f"'{it}'" for it in starts["events"])
        return Fix(
            summary,
            "js",
            f"// Ask when the page loads, and after the event {events}:\nif ({condition}) {{\n  // start it here\n}}",
        )
    attributes = " ".join(f'{key}="{value}"' for key, value in manager["script"].items()).replace("{PURPOSE}", purpose)
    return Fix(summary, "html", f"<!-- On the element that loads it: -->\n<script {attributes}></script>")


def _purpose(manager: Mapping[str, Any], vendor: Vendor, project: Project) -> tuple[str, str]:
    """Returns the library's name of the vendor's purpose, and what its configuration lacks if it has no such name."""
    if manager["vendor"] == "klaro":
        wanted = _WORD.sub("", vendor.id)
        services = [it for it in project.names if _WORD.sub("", it.lower()) == wanted]
        return (services[0], "") if services else (vendor.id, "the service")
    if "purposes" not in manager:
        return vendor.name, ""
    usual = manager["purposes"][_known()["purposes"].get(vendor.category, "marketing")]
    if isinstance(usual, str):
        return usual, ""
    used = [it for it in usual if it in project.names]
    return (used or usual)[0], "" if used or "necessary" not in project.names else "the category"


def _blocked(tag: Tag, library: Mapping[str, Any], purpose: str) -> Iterator[Change]:
    """Yields the changes by which a library activates the elements and calls of a tag. Raises Unsafe."""
    loads = [it for it in tag.elements if "started" not in it.parts] or tag.elements
    for place in tag.places:
        if place.kind == STATEMENT:
            yield from _waiting(tag, place, library, purpose)
        elif place not in loads:
            continue  # a call in the queue of what is loaded
        elif "noscript" in place.parts:
            yield removal_of_noscript(place)
        elif place.name.lower() == "script":
            yield from blocked_script(place, library, purpose)
        elif place.name.lower() in _FRAMES:
            yield from blocked_frame(place, library, purpose)
        else:
            raise Unsafe


def _waiting(tag: Tag, place: Place, library: Mapping[str, Any], purpose: str) -> Iterator[Change]:
    """Yields the changes by which a call waits for the library. Raises Unsafe."""
    starts = library.get("starts")
    imports = [it for it in tag.places if it.kind == IMPORT]
    if starts is None or tag.vendor.id in _known()["waits"] or "branch" in place.parts:
        raise Unsafe
    name = "".join(part.capitalize() for part in tag.vendor.id.split("-"))
    condition = starts["condition"].replace("{PURPOSE}", purpose)
    # Only some projects declare what a library adds to the window.
    undeclared = condition.startswith("window.") and tag.path.suffix in {".ts", ".tsx", ".mts"}
    before = (
        f"let started{name} = false;",
        f"const start{name} = () => {{",
        *((f"  // @ts-ignore: {library['name']} sets it",) if undeclared else ()),
        f"  if (started{name} || !{condition}) return;",
        f"  started{name} = true;",
    )
    after = (
        "};",
        f"start{name}();",
        *(f"window.addEventListener('{event}', start{name});" for event in starts["events"]),
    )
    yield waiting_call(place, before, after)
    if "import" in starts:
        if not imports:
            raise Unsafe
        yield insertion(imports[0], imports[0].start, starts["import"])


def _with_options(option: Mapping[str, str], vendor: Vendor) -> Fix:
    code = f"{option['start']}\n\n// When the visitor agrees, and on later visits if the stored choice says so:\n"
    return Fix(f"{vendor.name} waits until the visitor has agreed.", "js", code + option["agreed"])


def _with_api(tag: Tag) -> Fix:
    """Returns a fix for a page without a consent library: the vendor's own consent API, or elements that wait."""
    vendor, known = tag.vendor, _known()
    api = next((it for it in known["apis"] if vendor.id in it["vendors"]), None)
    agreed = "When the visitor agrees, and on later visits if the stored choice says so:"
    if api is not None:
        edits = tag.edits(_denied(tag, api))
        before = (
            ""
            if edits
            else f"{api.get('element', api.get('code', ''))}\n\n".replace("<script>\n", "").replace("</script>\n", "")
        )
        code = f"{before}// {agreed}\n{api['agreed']}"
        return Fix(f"{vendor.name} waits for consent through {api['name']}.", "js", code, (), edits)
    own, purpose = known["own"], known["purposes"].get(vendor.category, "marketing")
    edits = tag.edits(_blocked(tag, own, purpose))
    attributes = " ".join(f'{name}="{value}"' for name, value in own["script"].items())
    before = "" if edits else f"<!-- On the element that loads it: -->\n<script {attributes}></script>\n\n"
    body = own["code"].replace("\n", "\n  ").rstrip()
    code = f"{before}<script>\n  {body}\n</script>".replace("{PURPOSE}", purpose)
    return Fix(f"{vendor.name} waits until your banner starts it after consent.", "html", code, (), edits)


def _denied(tag: Tag, api: Mapping[str, Any]) -> Iterator[Change]:
    """Yields the changes that deny consent before a vendor's tag starts. Raises Unsafe."""
    first = None
    for place in tag.elements:
        if "noscript" in place.parts:
            yield removal_of_noscript(place)
        elif first is None and "before" in api and (found := re.search(api["before"], place.code)):
            if place.kind != TAG and "`" not in place.code:
                raise Unsafe
            first = insertion(place, place.start + found.start(), api["code"])
    if first is None:
        loads = [it for it in tag.elements if "noscript" not in it.parts]
        if "element" not in api or not loads or loads[0].kind != TAG:
            raise Unsafe
        first = insertion(loads[0], loads[0].start, api["element"])
    yield first


@cache
def _known() -> Mapping[str, Any]:
    found: Mapping[str, Any] = load_yaml(FIXES)
    return found

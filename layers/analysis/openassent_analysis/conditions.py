"""Conditions on a candidate beyond its syntax: each key of a rule's `where` is a function here.

A condition returns whether it holds for one candidate. It may record what it found on the candidate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import SCRIPTS, Block
from openassent_analysis.calls import calls
from openassent_analysis.catalogue import Vendor
from openassent_analysis.gates import checked, gating, runs_on_load
from openassent_analysis.gating import OPEN, Gate, Gating
from openassent_analysis.libraries import outdated_address
from openassent_analysis.loading import loaded, scripts_of, without_comments
from openassent_analysis.modules import COMPONENT_FILES
from openassent_analysis.sources import Source
from openassent_analysis.unknown import is_known_tag, registrable, unknown_host

_ATTRIBUTE: Final = re.compile(r"""[:\w-]{1,40}\s*+=\s*+\{?\s*+["'`]?([^"'`\s]{1,700})""")
_IS_SCRIPT: Final = re.compile(r"<script\b", re.IGNORECASE)
_LONGEST_NAME: Final = 100
_WORD: Final = re.compile(r"[\w$]+")
_GLOBALS: Final = frozenset({"window", "globalThis", "self", "await"})
_LONGEST_CALLEE: Final = 300
_THIS: Final = "this"
# this.client.start: fewer names are a method of the class itself.
_MEMBERS_OF_FIELD: Final = 2


@dataclass
class Candidate:
    source: Source
    block: Block
    node: SgNode
    vendor: Vendor | None = None
    # The host that the vendor is loaded from. Empty if it is imported from a package.
    host: str = ""
    # True if something else loads the vendor's code, possibly in another file.
    started: bool = False
    # Vendors of the same place that other candidates have.
    taken: frozenset[str] = frozenset()
    # True if the application imports the vendor's code, so that no script on the page can block it.
    bundled: bool = False
    gating: Gating = OPEN
    # Values for the placeholders in titles and descriptions.
    names: dict[str, str] = field(default_factory=dict)

    def text(self, capture: str | None) -> str:
        """Returns the code of the candidate or of a capture, without comments. Empty if the capture didn't match."""
        node = self.node if capture is None else self.node.get_match(capture)
        return without_comments(node) if node else ""


def _vendor(candidate: Candidate, wanted: Mapping[str, Any]) -> bool:
    for found in loaded(candidate.source, candidate.block, candidate.node, wanted.get("in")):
        if found.vendor.category in wanted["categories"] and found.vendor.id not in candidate.taken:
            candidate.vendor, candidate.host, candidate.started = found
            return True
    return False


def _unknown_script(candidate: Candidate, wanted: Mapping[str, Any]) -> bool:
    """Returns whether an unknown third party's script is loaded, whose content can change. Records its host."""
    known = candidate.source.catalogue
    served = loaded(candidate.source, candidate.block, candidate.node, wanted["in"])
    if any(found.vendor.id not in known.unjudged for found in served):
        return False  # a known vendor's, by its path or its call
    if candidate.block.language in SCRIPTS:
        addresses = scripts_of(candidate.block, candidate.node)
    elif _IS_SCRIPT.match(candidate.node.text()[:_LONGEST_NAME]):
        value = _ATTRIBUTE.match(candidate.text(wanted["in"]))
        addresses = iter([value[1]] if value else [])
    else:
        return False  # a frame has no access to the page
    address, host = next(((it, found) for it in addresses if (found := unknown_host(known, it))), ("", None))
    if host is None or registrable(host) in candidate.source.own_names or is_known_tag(candidate.text(None), address):
        return False
    candidate.host = candidate.names["host"] = host
    return True


def _package(candidate: Candidate, wanted: Mapping[str, Any]) -> bool:
    code, source = candidate.text(wanted["in"])[:_LONGEST_CALLEE], candidate.source
    names = [name for name in _WORD.findall(code) if name not in _GLOBALS]
    vendor = source.imported.get(names[0]) if names else None
    if vendor is None and len(names) > 1:
        own = names[0] == _THIS and len(names) > _MEMBERS_OF_FIELD
        vendor = source.holders.get(names[1] if own else names[0])
    if vendor is None and ("require(" in code or "import(" in code):
        vendor = source.inline_package(code)
    elif code.startswith(("'", '"')):
        vendor = source.packages.get(code.strip("'\""))
    if vendor is None or vendor.category not in wanted["categories"]:
        return False
    candidate.vendor = vendor
    # A page's own script isn't bundled.
    candidate.bundled = source.language != "html" or source.path.endswith(COMPONENT_FILES)
    return True


def _plugin(candidate: Candidate, wanted: Mapping[str, Any]) -> bool:
    """Returns whether a string names a plugin, or a property a script of a registry, that loads a vendor."""
    key = candidate.node.field("key")
    if key is not None:
        vendor = calls().registry.get(key.text().strip("\"'"))
    else:
        vendor = calls().plugins.get(candidate.node.text().strip("\"'`"))
    if vendor is None or vendor.category not in wanted["categories"]:
        return False
    candidate.vendor = vendor
    return True


def _ungated(candidate: Candidate, wanted: bool) -> bool:
    vendor_id = candidate.vendor.id if candidate.vendor else None
    candidate.gating = gating(candidate.source, candidate.block, candidate.node, vendor_id, bundled=candidate.bundled)
    if candidate.gating.gate is not Gate.CLOSED and (place := _inserting(candidate)) is not None:
        inside = gating(candidate.source, candidate.block, place)
        if inside.gate is Gate.CLOSED:
            candidate.gating = inside
    return (candidate.gating.gate is not Gate.CLOSED) is wanted


def _inserting(candidate: Candidate) -> SgNode | None:
    """Returns the place that adds the script, if the candidate calls a function of the same file that does it."""
    callee = candidate.node.field("function") if candidate.node.kind() == "call_expression" else None
    if callee is None or callee.kind() not in {"identifier", "member_expression"}:
        return None
    return candidate.block.inserters.get(callee.text()[-_LONGEST_NAME:].rpartition(".")[2])


def _unchecked(candidate: Candidate, wanted: bool) -> bool:
    """Returns whether no consent check encloses the candidate.

    Unlike `ungated`, ignores checks around the callers: the analysis of the whole project follows those.
    """
    if checked(candidate.source, candidate.block, candidate.node) is wanted:
        return False
    candidate.gating = gating(candidate.source, candidate.block, candidate.node)
    return True


def _on_load(candidate: Candidate, wanted: bool) -> bool:
    return runs_on_load(candidate.node) is wanted


def _text(candidate: Candidate, wanted: Mapping[str, str]) -> bool:
    text = candidate.text(wanted.get("in"))
    return matches(text, wanted)


def _also(candidate: Candidate, wanted: Mapping[str, str]) -> bool:
    return _text(candidate, wanted)


def _file(candidate: Candidate, wanted: Mapping[str, str]) -> bool:
    first = candidate.source.first
    return not (
        ("matches" in wanted and not first(_pattern(wanted["matches"])))
        or ("not" in wanted and first(_pattern(wanted["not"])))
    )


def _path(candidate: Candidate, wanted: Mapping[str, str]) -> bool:
    return matches(candidate.source.path, wanted)


def matches(text: str, wanted: Mapping[str, str]) -> bool:
    if "matches" in wanted and not _pattern(wanted["matches"]).search(text):
        return False
    return not ("not" in wanted and _pattern(wanted["not"]).search(text))


@cache
def _pattern(written: str) -> re.Pattern[str]:
    return re.compile(written)


def _outdated_library(candidate: Candidate, wanted: Mapping[str, Any]) -> bool:
    found = outdated_address(candidate.text(wanted.get("in")))
    if found is None:
        return False
    library, version = found
    candidate.names |= {"library": library.name, "version": version, "why": library.why}
    return True


CONDITIONS: Final[dict[str, Callable[[Candidate, Any], bool]]] = {
    "vendor": _vendor,
    "unknown_script": _unknown_script,
    "package": _package,
    "path": _path,
    "plugin": _plugin,
    "text": _text,
    "also": _also,
    "file": _file,
    "outdated_library": _outdated_library,
    "on_load": _on_load,
    "unchecked": _unchecked,
    "ungated": _ungated,
}


def holds(candidate: Candidate, where: Mapping[str, Any]) -> bool:
    """Returns whether all conditions hold. Checks them in the table's order, from cheap ones to tree walks."""
    return all(check(candidate, where[key]) for key, check in CONDITIONS.items() if key in where)

"""Decides whether code runs only after a visitor has consented.

A gate has to be shown: a consent library, a key of storage or a value that only the visitor's choice sets, or the
visitor's own click. It has a polarity and a branch. `expressions` decides what a condition says, by where its values
come from (`origins`); `walk` follows code outward to its conditions and callers; `options` knows the vendors' own
settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.gates import callers
from openassent_analysis.gates.callers import runs_on_load
from openassent_analysis.gates.context import NOTHING, Found, Implied, both, either_of, within
from openassent_analysis.gates.exports import providers_in
from openassent_analysis.gates.inert import is_inert
from openassent_analysis.gates.markup import enabled_with_consent, meaning_of_script
from openassent_analysis.gates.options import blocked_by_script, blocks, marked_by_code, waits_by_itself
from openassent_analysis.gates.reading import reading_of
from openassent_analysis.gates.texts import implied_by_text
from openassent_analysis.gating import (
    BLOCKER,
    BUNDLED,
    CLOSED,
    DEFAULT,
    LAYOUT,
    SERVER,
    Export,
    Gate,
    Gating,
    Provider,
)
from openassent_analysis.reading import resource
from openassent_analysis.report import MAX_GATING_NAMES, MAX_PROVIDERS
from openassent_analysis.sources import Source

__all__ = [
    "calls_on_page", "checked", "gating", "providers", "runs_on_load", "template_gating", "use_gating",
]  # fmt: skip

# Files that a framework or a page runs, together with their exports.
_ENTRY: Final = re.compile(
    r"(?:^|/)(?:\+?layout|_app|_document|_layout|\+?page|index|main|app|root|entry[.-]\w+|gatsby-\w+|nuxt\.config"
    r"|docusaurus\.config|hooks\.client|base|routes?|home)(?:\.\w+){1,2}$|(?:^|/)plugins/",
    re.IGNORECASE,
)

_SLOTS: Final = resource("queries")["slots"]
_READ_BY_VARIABLE: Final = re.compile(r"(?:\$_COOKIE\[|Cookie::(?:get|has)\(|->cookie\()\s{0,9}(\$\w{1,60})")
_MAX_SLOTS: Final = 20
# Templates whose conditions are expressions of their scripts.
_SCRIPTED: Final = (".svelte", ".astro")


def gating(source: Source, block: Block, node: SgNode, vendor: str | None = None, *, bundled: bool = False) -> Gating:
    """Returns whether the code of a node, which loads a vendor, waits for consent.

    bundled: it starts an SDK that the application imports, which no script on the page can block.
    """
    offset = block.start + node.range().start.index
    if not bundled and blocked_by_script(source, offset):
        return CLOSED
    if vendor and waits_by_itself(source, node, vendor, offset):
        return CLOSED
    found = _gating(source, block, node, vendor, offset)
    return _with(found, BUNDLED) if bundled else found


def use_gating(source: Source, block: Block, node: SgNode) -> Gating:
    """Returns whether a place that runs code of another file waits for consent."""
    offset = block.start + node.range().start.index
    found = _gating(source, block, node, None, offset)
    return _with(found, BLOCKER) if blocked_by_script(source, offset) else found


def _with(found: Gating, module: str) -> Gating:
    return replace(found, providers=(Export(module, ""), *found.providers)[:MAX_GATING_NAMES])


def _gating(source: Source, block: Block, node: SgNode, vendor: str | None, offset: int) -> Gating:
    if marked_by_code(block, node) or is_inert(source, block, node):
        return CLOSED
    if vendor and enabled_with_consent(reading_of(source), block, node):
        return CLOSED
    found = within(_implied_by_template(source, offset), reading_of(source).found(block, node)).gating()
    if found.gate is Gate.CALLERS and DEFAULT in found.callers and _ENTRY.search(source.path):
        return replace(found, gate=Gate.OPEN, callers=())
    return found


def providers(source: Source) -> list[Provider]:
    """Returns the exports that give the visitor's choice, or render their children only with consent."""
    found = dict.fromkeys(providers_in(reading_of(source)))
    if source.path.endswith((".vue", ".svelte", ".astro")):
        found |= dict.fromkeys(_slots(source))
    if source.template is not None:
        if blocks(source):
            found[Provider(LAYOUT, None)] = None
        elif layout := _layout(source):
            found[Provider(LAYOUT, layout)] = None
    return list(found)[:MAX_PROVIDERS]


def _slots(source: Source) -> Iterator[Provider]:
    """Yields that a component shows its content only with consent, or behind a script that blocks others."""
    gates = [use_gating(source, source.main, slot) for slot in source.main.root.find_all(_SLOTS)[:_MAX_SLOTS]]
    blocker = Export(BLOCKER, "")
    if gates and all(it.gate is Gate.CLOSED or blocker in it.providers for it in gates):
        yield Provider(DEFAULT, blocker if any(it.gate is not Gate.CLOSED for it in gates) else None)


def calls_on_page(source: Source, name: str) -> list[Gating]:
    """Returns whether each place waits for consent that calls a function of another script on the page."""
    return [found.gating() for found in callers.calls_on_page(reading_of(source), name)]


def _layout(source: Source) -> Export | None:
    """Returns the layout that a template extends."""
    return Export(source.template.layout, LAYOUT) if source.template and source.template.layout else None


def template_gating(source: Source, offset: int) -> Gating:
    """Returns whether a template writes the code at a place only with consent."""
    found = Found(_implied_by_template(source, offset)).gating()
    return _with(found, BLOCKER) if blocked_by_script(source, offset) else found


def _implied_by_template(source: Source, offset: int) -> Implied:
    """Returns the gate implied by the template's conditions around a place."""
    layout = _layout(source)
    found = Implied(providers=frozenset({layout})) if layout else NOTHING
    return both(found, _implied_by_code(source, offset, {}))


def _implied_by_code(source: Source, offset: int, known: dict[int, Implied]) -> Implied:
    """Returns the gate implied by the conditions around a place, and around the uses of the function that it is in."""
    found = _implied_by_conditions(source, offset)
    function = source.template.function_at(offset) if source.template else None
    if function is None:
        return found
    if function.start not in known:
        known[function.start] = NOTHING  # for a function that calls itself
        ways = [_implied_by_code(source, use, known) for use in function.uses]
        known[function.start] = either_of(ways) or NOTHING
    return both(found, known[function.start])


def _implied_by_conditions(source: Source, offset: int) -> Implied:
    found = NOTHING
    for test in source.template_conditions(offset):
        if source.path.endswith(_SCRIPTED):
            meaning = meaning_of_script(reading_of(source), test.text)
            found = both(found, meaning.true if test.holds else meaning.false)
        else:
            found = both(found, implied_by_text(_with_key(source, test.text), holds=test.holds))
    return found


def _with_key(source: Source, test: str) -> str:
    """Returns a condition of PHP with the cookie's name instead of the variable that holds it."""
    read = _READ_BY_VARIABLE.search(test)
    if read is None or source.template is None:
        return test
    key = source.template.assigned.get(read[1])
    return test.replace(read[1], f"'{key}'") if key else test


def checked(source: Source, block: Block, node: SgNode) -> bool:
    """Returns whether a condition, earlier return, or callback in its own tree keeps code from running by itself."""
    found = reading_of(source).found(block, node)
    asked = any(it.module != SERVER for it in found.implied.providers)
    return found.closed or found.implied.unclear or asked

"""Finds the places that call a function of another script on the page, by its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from openassent_analysis.blocks import SCRIPTS
from openassent_analysis.gates import events
from openassent_analysis.gates.callers import of_global
from openassent_analysis.gates.context import RUNS, Found, Reader
from openassent_analysis.gates.events import Refused

_MAX_PLACES: Final = 20


def calls_of(reader: Reader, name: str) -> Iterator[Found]:
    """Yields the gates of each place that calls a function which the file doesn't define or import."""
    index = reader.index
    own = name in index.declarations or name in index.imports
    for place in index.uses.get(name, ())[:_MAX_PLACES]:
        if place.block.language not in SCRIPTS:
            continue
        parent = place.node.parent()
        bare = place.node.kind() == "identifier" and parent is not None and parent.kind() in {
            "call_expression", "arguments",
        }  # fmt: skip
        if (bare and not own) or (place.node.kind() == "property_identifier" and of_global(place.node)):
            yield reader.found(place.block, place.node)
    for event in sorted(index.events.get(name, ())) if reader.language == "html" and not own else ():
        try:
            yield Found(events.implied_by_elements_event(event))
        except Refused:
            yield RUNS

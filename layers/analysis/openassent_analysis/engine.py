"""Checks one file against every rule.

A file is parsed only if a word, an address, or a package in it makes a match possible. Each of its trees is built once
for all rules, and rules with equal candidates share one search.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ast_grep_py import SgNode

from openassent_analysis import secrecy
from openassent_analysis.blocks import SCRIPTS, Block
from openassent_analysis.calls import calls
from openassent_analysis.calls import candidates as calls_in
from openassent_analysis.catalogue import catalogue
from openassent_analysis.conditions import Candidate, holds, matches
from openassent_analysis.files import Skipped, check_depth
from openassent_analysis.findings import SEVERITIES
from openassent_analysis.fingerprints import Fingerprints, shape_of, words
from openassent_analysis.gates.options import GOOGLE
from openassent_analysis.limits import Limits
from openassent_analysis.locating import places_of, unused_imports
from openassent_analysis.places import MAX_PLACES, MAX_TEXT, Place
from openassent_analysis.report import MAX_LOADS, Load, Match, has_loader
from openassent_analysis.rules import Rule, rules
from openassent_analysis.sources import Source
from openassent_analysis.surroundings import without_indent
from openassent_analysis.templates.reading import read_template
from openassent_analysis.vocabulary import sought

# The text that templates write.
PAGES: Final = frozenset({"html", "javascript", "typescript"})
_MAX_SNIPPET_LINES: Final = 12


class Triggers:
    """Selects the rules that a text may match, without parsing it."""

    def __init__(self, every: Sequence[Rule]) -> None:
        self._syntax: Final = [
            (rule, frozenset(rule.triggers), frozenset(rule.requires), rule.vendor_categories, rule.package_categories)
            for rule in every
            if rule.engine == "syntax"
        ]
        self._words: Final = sought(word for rule, *_ in self._syntax for word in (*rule.triggers, *rule.requires))

    def possible(self, source: Source) -> list[Rule]:
        present = source.vocabulary.present(self._words)
        served: set[str] | None = None
        found = []
        for rule, triggering, required, vendor_categories, package_categories in self._syntax:
            if (triggering and present.isdisjoint(triggering)) or (required and present.isdisjoint(required)):
                continue
            if not _applies(rule, source):
                continue
            if vendor_categories:
                if served is None:
                    served = {vendor.category for vendor in source.named}
                if served.isdisjoint(vendor_categories):
                    continue
            if "unknown_script" in rule.where and not source.may_load_unknown:
                continue
            if package_categories and not any(
                vendor.category in package_categories
                for vendor in (*source.packages.values(), *source.imported.values())
            ):
                continue
            found.append(rule)
        return found


def _applies(rule: Rule, source: Source) -> bool:
    if source.language not in rule.match and not (source.language == "html" and "javascript" in rule.match):
        return False
    return "path" not in rule.where or matches(source.path, rule.where["path"])


@cache
def triggers() -> Triggers:
    return Triggers(rules())


def analyze_source(source: Source, limits: Limits) -> tuple[list[Match], bool, set[Load]]:
    """Returns the matches of one file, True if they were cut off at the limit per file, and the vendors it loads.

    Raises Skipped.
    """
    found: list[Match] = []
    loads: set[Load] = set()
    possible = triggers().possible(source)
    if not possible:
        return found, False, loads
    check_depth(source.text, source.language, limits)
    deadline = min(source.deadline, time.thread_time() + limits.max_seconds_per_file)
    candidates = sorted(
        _candidates(source, possible, deadline, loads),
        key=lambda entry: (entry[1].block.start + entry[1].node.range().start.index, entry[0].id),
    )
    fingerprints = Fingerprints(source.path)
    editable = _Editable()
    loaded: set[str] = set()
    places: set[tuple[str, str | None, int]] = set()
    complete = {load.vendor_id for load in loads}
    for rule, candidate in distinct(candidates):
        if candidate.vendor and _is_second_tag(candidate, complete, loaded):
            candidate.started = False
        if candidate.started and candidate.vendor and has_loader(candidate.vendor.id, complete):
            editable.add(candidate)
            continue  # the load of the vendor's code decides
        vendor = candidate.vendor.id if candidate.vendor else candidate.host
        if vendor and rule.where.get("once_per_vendor"):
            # A tag consists of a script, its start call, and an image for browsers without scripts: one finding.
            editable.add(candidate)
            if vendor in loaded:
                continue
            loaded.add(vendor)
        node = _reported(rule, candidate.node)
        place = (rule.id, vendor, candidate.block.start + node.range().start.index)
        if place in places:
            continue
        places.add(place)
        if len(found) >= limits.max_findings_per_file:
            return found, True, loads
        found.append(_match(rule, candidate, node, fingerprints, limits))
    return [replace(match, places=editable.places(source, match.vendor_id)) for match in found], False, loads


class _Editable:
    """Collects the places of each vendor's tag, all of which its fix edits."""

    def __init__(self) -> None:
        self._places: dict[str, list[Place]] = {}
        self._unsafe: set[str] = set()

    def add(self, candidate: Candidate) -> None:
        if candidate.vendor is None:
            return
        vendor, found = candidate.vendor.id, places_of(candidate)
        if found:
            known = self._places.setdefault(vendor, [])
            known += [place for place in found if place not in known]
        elif not candidate.started:
            self._unsafe.add(vendor)

    def places(self, source: Source, vendor_id: str | None) -> list[Place]:
        """Returns the places of a vendor. Empty if there are too many, or one can't be edited."""
        found = self._places.get(vendor_id or "", [])
        found = [*found, *unused_imports(source, found)]
        fits = len(found) <= MAX_PLACES and sum(len(place.text) for place in found) <= MAX_TEXT
        return found if fits and vendor_id not in self._unsafe else []


def _candidates(
    source: Source, possible: list[Rule], deadline: float, loads: set[Load]
) -> Iterator[tuple[Rule, Candidate]]:
    """Yields the candidates that meet all conditions. Adds the loads of all candidates, gated or not, to `loads`."""
    for block in source.blocks:
        matched: dict[int, list[SgNode]] = {}
        started = _calls(source, block)
        for rule in possible:
            config = rule.match.get(block.language)
            if config is None:
                continue
            if time.thread_time() > deadline:
                raise Skipped("too slow")
            nodes = _matched(block, config, matched) + (started if rule.calls else [])
            for node in nodes:
                if time.thread_time() > deadline:
                    raise Skipped("too slow")
                for candidate, meets_all in _each_vendor(source, block, node, rule):
                    if (
                        candidate.vendor
                        and rule.category == "trackers"
                        and not candidate.started
                        and len(loads) < MAX_LOADS
                    ):
                        loads.add(Load(candidate.vendor.id, candidate.host))
                    if meets_all:
                        yield rule, candidate


def _each_vendor(source: Source, block: Block, node: SgNode, rule: Rule) -> Iterator[tuple[Candidate, bool]]:
    """Yields a candidate for each vendor that one place may load, and whether it meets all conditions."""
    taken: frozenset[str] = frozenset()
    while True:
        candidate = Candidate(source, block, node, taken=taken)
        meets_all = holds(candidate, rule.where)
        if candidate.vendor or not taken:
            yield candidate, meets_all
        if candidate.vendor is None or candidate.started or "vendor" not in rule.where:
            return
        taken |= {candidate.vendor.id}


def _is_second_tag(candidate: Candidate, complete: AbstractSet[str], loaded: AbstractSet[str]) -> bool:
    """Returns whether a call makes another vendor's script, which the same file loads, load this vendor's tag too."""
    vendor_id = candidate.vendor.id if candidate.vendor and candidate.started else ""
    return vendor_id not in complete and calls().loaded_by.get(vendor_id) in loaded


def _matched(block: Block, config: Any, matched: dict[int, list[SgNode]]) -> list[SgNode]:
    """Returns the nodes of a block that match, which rules with the same candidates share."""
    if id(config) not in matched:
        matched[id(config)] = block.root.find_all(config)
    return matched[id(config)]


def _calls(source: Source, block: Block) -> list[SgNode]:
    """Returns the calls in a block that may start a vendor."""
    shapes = [shape for shape in source.calls if shape.pattern.search(block.text)] if block.language in SCRIPTS else []
    return block.root.find_all(calls_in(shapes)) if shapes else []


def _reported(rule: Rule, node: SgNode) -> SgNode:
    return (rule.report and node.get_match(rule.report)) or node


def _match(rule: Rule, candidate: Candidate, node: SgNode, fingerprints: Fingerprints, limits: Limits) -> Match:
    source, vendor = candidate.source, candidate.vendor
    span, code = node.range(), words(node)
    vendor_id = vendor.id if vendor else None
    start, end = candidate.block.start + span.start.index, candidate.block.start + span.end.index
    return Match(
        rule.id,
        {"vendor": vendor.name if vendor else "", **candidate.names},
        vendor_id,
        None,
        *locate(source, start, end, limits),
        *fingerprints.take(rule.id, " ".join(code), shape_of(rule.id, rule.category, vendor_id, code)),
        candidate.gating,
        vendor is not None and vendor.id in GOOGLE and "ungated" in rule.where,
        candidate.started,
    )


def locate(source: Source, start: int, end: int, limits: Limits) -> tuple[int, int, int, int, str]:
    """Returns first and last line, start and end column, and snippet for a range of characters."""
    first, start_column = source.position(start)
    last, end_column = source.position(max(start, end))
    shown_until = min(last, first + _MAX_SNIPPET_LINES - 1)
    lines = source.original[source.line_start(first) : source.line_start(last + 1)].rstrip("\r\n")
    # Masks before truncating, because a truncated secret may no longer look like one.
    lines = secrecy.masked(lines)
    shown, indent = without_indent(lines.split("\n")[: shown_until - first + 1])
    snippet = "\n".join(shown)
    if len(snippet) > limits.max_snippet_length:
        begin = max(0, min(start_column - 1 - indent - 80, len(snippet) - limits.max_snippet_length))
        snippet = snippet[begin : begin + limits.max_snippet_length] + "…"
    return first, last, start_column, end_column, snippet


def source_of(path: str, text: str, language: str, given: Mapping[str, str] = MappingProxyType({})) -> Source:
    """given: addresses that other files of the project give a template's variables, by variable."""
    template = read_template(path, text, given) if language in PAGES else None
    return Source(path, template.code if template else text, language, catalogue(), template)


Found: TypeAlias = tuple[Rule, Candidate]
Range: TypeAlias = tuple[int, int]

# Is as severe as the rule about passwords, payment, and health data, which says more.
_ANY_FIELD: Final = "personal-data-in-event"
# Says that a tracker runs on refusal, as the finding about a tracker inside of it does.
_ON_REFUSAL: Final = "tracker-runs-on-refusal"


def distinct(found: Iterable[Found]) -> list[Found]:
    """Returns the candidates without those that repeat a fact of another one. Keeps their order."""
    everything = list(found)
    trackers = sorted(_range(candidate)[0] for rule, candidate in everything if rule.category == "trackers")
    best: dict[object, int] = {}
    for index, (rule, candidate) in enumerate(everything):
        if rule.id == _ON_REFUSAL and _contains(_range(candidate), trackers):
            continue
        fact = _fact(rule, candidate) or index
        if fact not in best or _rank(rule) < _rank(everything[best[fact]][0]):
            best[fact] = index
    return [everything[index] for index in sorted(best.values())]


def _fact(rule: Rule, candidate: Candidate) -> object:
    """Returns the candidate's fact, which others may share, or None."""
    return (rule.category, _range(candidate)) if rule.category == "personal-data" else None


def _rank(rule: Rule) -> tuple[int, bool]:
    return SEVERITIES.index(rule.severity), rule.id == _ANY_FIELD


def _range(candidate: Candidate) -> Range:
    span, start = candidate.node.range(), candidate.block.start
    return start + span.start.index, start + span.end.index


def _contains(outer: Range, starts: list[int]) -> bool:
    """Returns whether one of the sorted starts is inside a range. Then its whole node is, because trees nest."""
    first = bisect_left(starts, outer[0])
    return first < len(starts) and starts[first] < outer[1]

"""Reports each fact of a file once, if several rules find it or find it in several places."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, TypeAlias

from openassent_analysis.conditions import Candidate
from openassent_analysis.findings import SEVERITIES
from openassent_analysis.rules import Rule

Found: TypeAlias = tuple[Rule, Candidate]
Range: TypeAlias = tuple[int, int]

# Recognizes any generated value by its name. The rules that recognize a provider's format say more.
_BY_NAME: Final = "hard-coded-client-secret"
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
    if candidate.secrets:
        return "secret", *candidate.secrets
    if rule.category == "secrets":
        return rule.id, candidate.text(None)
    if rule.category == "personal-data":
        return rule.category, _range(candidate)
    return None


def _rank(rule: Rule) -> tuple[bool, int, bool]:
    return rule.id == _BY_NAME, SEVERITIES.index(rule.severity), rule.id == _ANY_FIELD


def _range(candidate: Candidate) -> Range:
    span, start = candidate.node.range(), candidate.block.start
    return start + span.start.index, start + span.end.index


def _contains(outer: Range, starts: list[int]) -> bool:
    """Returns whether one of the sorted starts is inside a range. Then its whole node is, because trees nest."""
    first = bisect_left(starts, outer[0])
    return first < len(starts) and starts[first] < outer[1]

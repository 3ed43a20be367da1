"""The interface between the modules of this package, whose names, conditions, and callers refer to each other."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.gates.implied import GIVEN, NOTHING, Implied, Meaning, both, either
from openassent_analysis.gates.index import Index, Place
from openassent_analysis.gating import CLOSED, Gate, Gating, Unclear
from openassent_analysis.report import MAX_GATING_NAMES


class Found(NamedTuple):
    """The conditions under which code runs.

    callers: functions that run it, if the file itself doesn't call them. handed_on: a function that runs it is given to
    something that isn't known.
    """

    implied: Implied = NOTHING
    callers: frozenset[str] = frozenset()
    handed_on: bool = False

    @property
    def closed(self) -> bool:
        return self.implied.given

    def gating(self) -> Gating:
        if self.closed:
            return CLOSED
        unclear = Unclear.CONDITION if self.implied.unclear else Unclear.CALLBACK if self.handed_on else Unclear.NOTHING
        return Gating(
            Gate.CALLERS if self.callers else Gate.OPEN,
            tuple(sorted(self.callers))[:MAX_GATING_NAMES],
            tuple(sorted(self.implied.providers))[:MAX_GATING_NAMES],
            unclear,
        )


RUNS = Found()
WAITS = Found(GIVEN)


def within(condition: Implied, found: Found) -> Found:
    """Returns the gates of code under a condition."""
    return found._replace(implied=both(condition, found.implied))


def any_of(ways: list[Found]) -> Found:
    """Returns the gates of code that runs in several ways: those that all of them have."""
    rest = [way for way in ways if not way.closed]
    if not rest:
        return WAITS
    implied = rest[0].implied
    for way in rest[1:]:
        implied = either(implied, way.implied)
    direct = any(not way.callers for way in rest)
    callers = frozenset() if direct else frozenset().union(*(way.callers for way in rest))
    return Found(implied, callers, all(way.handed_on for way in rest))


class Reader(Protocol):
    @property
    def language(self) -> str: ...

    @property
    def index(self) -> Index: ...

    def meaning(self, block: Block, node: SgNode) -> Meaning:
        """Returns the meaning of an expression for the visitor's choice."""
        ...

    def found(self, block: Block, node: SgNode, inside: SgNode | None = None) -> Found:
        """Returns the gates of a node, up to the function `inside` if it is given."""
        ...

    def callers(self, block: Block, function: SgNode) -> Found:
        """Returns the gates of a function, by its callers."""
        ...

    def given_to(self, function: SgNode) -> list[SgNode]:
        """Returns the calls that a function is given to, where it is written or by its name."""
        ...

    def calls(self, function: SgNode) -> list[Place] | None:
        """Returns the calls of a function by its name. None if the file also uses it in another way."""
        ...

    def guards(self, block: Block, sequence: SgNode) -> list[tuple[int, Implied]]:
        """Returns the gates implied behind the statements that leave a sequence, by their ends."""
        ...

    def has_category(self, properties: SgNode) -> bool:
        """Returns whether an object names the category of consent that it belongs to."""
        ...

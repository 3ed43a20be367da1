"""The meaning of conditions, and the interface between the modules of this package, which refer to each other.

A condition implies a gate if it holds, and another one if it doesn't.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import reduce
from typing import Final, NamedTuple, Protocol

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.gates.index import Index, Place
from openassent_analysis.gating import CLOSED, Export, Gate, Gating, Unclear
from openassent_analysis.report import MAX_GATING_NAMES


class Implied(NamedTuple):
    """The facts that are known if a condition holds.

    given: the visitor has consented. providers: the visitor has consented if one of these gives the choice.
    unclear: the visitor may have consented.
    """

    given: bool = False
    providers: frozenset[Export] = frozenset()
    unclear: bool = False


NOTHING: Final = Implied()
GIVEN: Final = Implied(given=True)
UNCLEAR: Final = Implied(unclear=True)


class Kind(Enum):
    """The kind of a value, which decides the meaning of its comparisons."""

    OTHER = "other"
    # True only with consent, and false without it.
    FLAG = "flag"
    # The visitor's choice, which can be undecided or a refusal.
    CHOICE = "choice"
    # Something in storage, which may be the choice.
    STORED = "stored"


class Meaning(NamedTuple):
    """The facts that follow if a value is true, and if it is false."""

    true: Implied = NOTHING
    false: Implied = NOTHING
    kind: Kind = Kind.OTHER


OTHER: Final = Meaning()
# Constants: everything follows from a condition that never holds, because its branch never runs.
ALWAYS: Final = Meaning(NOTHING, GIVEN)
NEVER: Final = Meaning(GIVEN, NOTHING)
CHOICE: Final = Meaning(GIVEN, NOTHING, Kind.CHOICE)
FLAG: Final = Meaning(GIVEN, NOTHING, Kind.FLAG)
STORED: Final = Meaning(NOTHING, NOTHING, Kind.STORED)
MAYBE: Final = Meaning(UNCLEAR, NOTHING, Kind.CHOICE)


def both(one: Implied, other: Implied) -> Implied:
    """Returns the gate implied by both conditions together."""
    return Implied(one.given or other.given, one.providers | other.providers, one.unclear or other.unclear)


def either(one: Implied, other: Implied) -> Implied:
    """Returns the gate that both conditions imply, if one of them holds."""
    if one.given:
        return other
    if other.given:
        return one
    if NOTHING in {one, other}:
        return NOTHING
    return Implied(
        providers=one.providers | other.providers if one.providers and other.providers else frozenset(),
        unclear=one.unclear or other.unclear or bool(one.providers) != bool(other.providers),
    )


def either_of(ways: Iterable[Implied]) -> Implied | None:
    """Returns the gate that all ways imply, of which one is taken. None if there is no way."""
    known = list(ways)
    return reduce(either, known) if known else None


def negated(value: Meaning) -> Meaning:
    return Meaning(value.false, value.true)


def conjunction(one: Meaning, other: Meaning) -> Meaning:
    return Meaning(both(one.true, other.true), either(one.false, other.false), _kind(one, other))


def disjunction(one: Meaning, other: Meaning) -> Meaning:
    return Meaning(either(one.true, other.true), both(one.false, other.false), _kind(one, other))


def selection(test: Meaning, one: Meaning, other: Meaning) -> Meaning:
    """Returns the meaning of `test ? one : other`."""
    return Meaning(
        either(both(test.true, one.true), both(test.false, other.true)),
        either(both(test.true, one.false), both(test.false, other.false)),
        Kind.FLAG,
    )


def _kind(one: Meaning, other: Meaning) -> Kind:
    return one.kind if one.kind is not Kind.OTHER else other.kind


def compared(value: Meaning, *, positive: bool, falsy: bool) -> Meaning:
    """Returns the meaning of `value === literal`.

    positive: the literal means consent. falsy: it is false, 0, or empty, so a flag that equals it means no consent.
    """
    if positive:
        return Meaning(value.true, value.false if value.kind is Kind.FLAG else NOTHING, Kind.FLAG)
    if falsy and value.kind is Kind.FLAG:
        return Meaning(value.false, value.true, Kind.FLAG)
    return OTHER


class Found(NamedTuple):
    """The conditions under which code runs.

    callers: the functions that run it and that this file never calls. handed_on: a function that runs it is passed to
    unknown code.
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

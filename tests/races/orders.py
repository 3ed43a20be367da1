"""Chooses orders of concurrent steps so that each one that can make a difference is run, and none twice.

Two orders that differ only in steps that don't conflict lead to the same responses and table. One of them runs.
Source: "Source Sets: A Foundation for Optimal Dynamic Partial Order Reduction" (Abdulla, Aronis, Jonsson, Sagonas;
Journal of the ACM 64(4), 2017), algorithm 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import NamedTuple

from tests.races.footprints import Footprint


class NotRepeatable(Exception):
    """The same order of calls led to different calls than before, so the orders can't be enumerated.

    The calls depend on something other than the table: a cache, the wall clock, a number. Pin it in the test.
    """


class Repeated(Exception):
    """The rest of the run would repeat an order."""


@dataclass
class _Node:
    """A state that a run reached. The orders behind a step are explored before those behind the next one.

    enabled: the acts that can go on. planned: those whose step is to be explored from here. asleep: those whose step
    would repeat an explored order, with what the step touches.
    """

    asleep: dict[int, Footprint] = field(default_factory=dict)
    enabled: list[int] | None = None
    planned: list[int] = field(default_factory=list)
    behind: dict[int, tuple[Footprint, "_Node"]] = field(default_factory=dict)

    @property
    def next(self) -> int | None:
        return next((act for act in self.planned if act not in self.asleep), None)


class _Step(NamedTuple):
    node: _Node
    act: int
    footprint: Footprint


class Orders:
    """Chooses the acts' steps in each run, depth first."""

    def __init__(self) -> None:
        self._node = self._root = _Node()
        self._steps: list[_Step] = []

    def choose(self, enabled: list[int]) -> int | None:
        """Returns the act to continue, or None if all have ended. Raises Repeated if each choice repeats an order."""
        node = self._node
        if node.enabled not in (None, enabled):
            raise NotRepeatable(f"then {node.enabled} could go on, now {enabled}")
        node.enabled = enabled
        if enabled and not node.planned:
            node.planned += [act for act in enabled if act not in node.asleep][:1]
        if enabled and not node.planned:
            raise Repeated
        return node.next

    def stepped(self, act: int, footprint: Footprint) -> None:
        """Goes to the state behind the act's step, which had this footprint."""
        node = self._node
        if act not in node.behind:
            still = {other: its for other, its in node.asleep.items() if not its.conflicts(footprint)}
            node.behind[act] = footprint, _Node(still)
        expected, self._node = node.behind[act]
        if footprint != expected:
            raise NotRepeatable(f"then act {act} touched {expected}, now {footprint}")
        self._steps.append(_Step(node, act, footprint))

    def end(self) -> bool:
        """Ends a run, and goes back to the first state. Returns whether there is another run."""
        self._plan_reversals()
        for node, act, footprint in reversed(self._steps):
            if node.behind[act][1].next is not None:
                break
            del node.behind[act]
            node.asleep[act] = footprint
        self._node, self._steps = self._root, []
        return self._root.next is not None

    def _plan_reversals(self) -> None:
        """Plans, for each two conflicting steps that nothing else orders, an order in which the later one is first."""
        steps = self._steps
        before: list[int] = []  # for each step, those that must precede it: a set of bits
        for later, step in enumerate(steps):
            direct = [
                earlier
                for earlier, other in enumerate(steps[:later])
                if other.act == step.act or other.footprint.conflicts(step.footprint)
            ]
            before.append(_bits(direct) | _union(before[earlier] for earlier in direct))
            indirect = _union(before[earlier] for earlier in direct)
            for earlier in direct:
                if steps[earlier].act != step.act and not indirect >> earlier & 1:
                    self._plan_reversal(earlier, later, before)

    def _plan_reversal(self, earlier: int, later: int, before: list[int]) -> None:
        """Plans a run that has the same steps up to `earlier`, and then those that needn't follow it, up to `later`."""
        node = self._steps[earlier].node
        free = [number for number in range(earlier + 1, later) if not before[number] >> earlier & 1] + [later]
        first = [self._steps[number].act for number in free if not before[number] & _bits(free)]
        if not {*node.planned, *node.asleep}.intersection(first):
            node.planned.append(first[0])


def _bits(numbers: Iterable[int]) -> int:
    return _union(1 << number for number in numbers)


def _union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)

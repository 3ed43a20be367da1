"""The search for an order, on histories whose orders are known."""

from math import inf

from tests.support.each import each
from tests.support.histories import Operation, find_order


def register(value: int, done: Operation) -> int | None:
    """A register with writes, reads, and increments that return the value before."""
    if done.name == "write":
        return int(done.argument)
    if done.name == "add":
        return value + 1 if done.result in {value, None} else None
    return value if done.result == value else None


def write(value: int, began: float, ended: float = inf) -> Operation:
    return Operation("write", value, None, began, ended)


def read(value: int, began: float, ended: float) -> Operation:
    return Operation("read", None, value, began, ended)


def add(before: int | None, began: float, ended: float = inf) -> Operation:
    return Operation("add", None, before, began, ended)


ORDERED = {
    "nothing": [],
    "one after the other": [write(1, 0, 1), read(1, 2, 3)],
    "a read during a write sees the old value": [write(1, 0, 3), read(0, 1, 2)],
    "a read during a write sees the new value": [write(1, 0, 3), read(1, 1, 2)],
    "the later write began first": [write(1, 0, 5), write(2, 1, 2), read(2, 3, 4), read(1, 6, 7)],
    "an unknown write that took effect late": [write(1, 0), read(0, 1, 2), read(1, 3, 4)],
    "an unknown write that never took effect": [write(1, 0), read(0, 1, 2), read(0, 3, 4)],
    "overlapping increments": [add(1, 0, 3), add(0, 1, 2), read(2, 4, 5)],
}
UNORDERED = {
    "a read of what no write wrote": [read(1, 0, 1)],
    "a read of what was overwritten": [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)],
    "a read before the write": [read(1, 0, 1), write(1, 2, 3)],
    "two reads in the wrong order": [write(1, 0, 9), read(1, 1, 2), read(0, 3, 4)],
    "a lost update": [add(0, 0, 2), add(0, 1, 3)],
    "an unknown increment that was undone": [add(None, 0), read(1, 1, 2), read(0, 3, 4)],
}


@each("operations", ORDERED.values(), ids=ORDERED)
def test_finds_an_order(operations: list[Operation]):
    assert find_order(operations, 0, register) is not None


@each("operations", UNORDERED.values(), ids=UNORDERED)
def test_finds_no_order_if_there_is_none(operations: list[Operation]):
    assert find_order(operations, 0, register) is None


def test_many_equal_states_are_searched_once():
    overlapping = [add(number, 0, 100) for number in range(12)]
    assert find_order([*overlapping, read(13, 101, 102)], 0, register) is None

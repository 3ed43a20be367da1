"""A write that was decided on a state that has changed since is refused, and changes nothing.

Each case reads, and returns the write, the write of another caller that comes first, and the error. The other write
changes only what one condition compares.
"""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Leg, Update, table
from tests.support.table import PREPARED
from tests.support.world import World, table_dump

type Act = Callable[[], Any]
type Case = tuple[Act, Act, type[Exception]]
type Make = Callable[[World], Case]

ORGANIZATION = "org_0000000000000000"


class Refused(Exception):
    """A write that returns whether it happened didn't."""


def happens(write: Callable[[], object]) -> Act:
    """Makes a write that returns whether it happened raise if it didn't."""

    def act() -> None:
        if not write():
            raise Refused

    return act


def sets(key: keys.Key, **values: Any) -> Act:
    change = "SET " + ", ".join(f"#{name} = :{name}" for name in values)
    return updates(Update(key, change, None, values))


def updates(write: Update) -> Act:
    return lambda: table.update(write, PREPARED)


def deletes(key: keys.Key) -> Act:
    return lambda: table.delete(Delete(key), PREPARED)


def transacts(**legs: Leg) -> Act:
    return lambda: table.transact(legs, PREPARED)


def check_refused(make: Make, world: World) -> None:
    write, earlier, error = make(world)
    earlier()
    before = table_dump()
    with pytest.raises(error):
        write()
    assert table_dump() == before

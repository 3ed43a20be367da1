"""A write that was decided on a state that has changed since is refused, and changes nothing.

Each case reads, and returns the write, the write of another caller that comes first, and the error. The other write
changes only what one condition compares.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from tests.support.world import World, table_dump

type Act = Callable[[], Any]
type Case = tuple[Act, Act, type[Exception]]
type Make = Callable[[World], Case]

ORGANIZATION = "org_0000000000000000"


class Refused(Exception):
    """A write that returns whether it happened didn't."""


def cases(module: dict[str, Any]) -> list[Make]:
    """Returns the module's public functions that make a case."""
    return [
        made
        for name, made in module.items()
        if isinstance(made, FunctionType) and made.__annotations__.get("return") is Case and not name.startswith("_")
    ]


def check_refused(make: Make, world: World) -> None:
    write, earlier, error = make(world)
    earlier()
    before = table_dump()
    with pytest.raises(error):
        write()
    assert table_dump() == before

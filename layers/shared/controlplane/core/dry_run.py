"""A dry run: a request that is checked and answered like any other, but changes nothing and sends nothing.

`store.table` then checks the conditions of writes instead of writing. Only requests are still counted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_dry: ContextVar[bool] = ContextVar("dry run", default=False)


def is_active() -> bool:
    """Returns whether what runs in this context must have no effect."""
    return _is_dry.get()


@contextmanager
def begin(*, active: bool = True) -> Iterator[None]:
    """Runs the block as a dry run, if it is to be one."""
    token = _is_dry.set(active)
    try:
        yield
    finally:
        _is_dry.reset(token)

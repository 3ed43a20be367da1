"""A dry run: a request that is checked and answered like any other, but changes nothing and sends nothing.

`table.table` then checks the conditions of writes instead of writing, so every rule, error, and order of refusals is
that of the real request, without code of its own. Only requests are still counted.
"""

from contextvars import ContextVar

from controlplane.platform.core.context import Setting

_is_dry: ContextVar[bool] = ContextVar("dry run", default=False)


def is_active() -> bool:
    """Returns whether code in this context must have no effect."""
    return _is_dry.get()


def begin(*, active: bool = True) -> Setting[bool]:
    """Runs the block as a dry run, if it is to be one."""
    return Setting(_is_dry, active)

"""Values that apply to everything that runs in a block."""

from contextvars import ContextVar


class Setting[Value]:
    """Sets a context variable for the length of a `with` block.

    A class, because every request begins several such blocks, and a generator takes several times as long.
    """

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[Value], value: Value) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)

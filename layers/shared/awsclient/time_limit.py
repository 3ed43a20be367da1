"""The time that calls may still take, which the program that makes them decides."""

from collections.abc import Callable

# A socket timeout of 0 means "don't block", so this is the timeout if no time is left.
_SHORTEST_SECONDS = 0.001


class TimeLimit:
    """remaining: returns the seconds left, negative if they are exceeded, or None without a limit."""

    __slots__ = ("remaining",)

    def __init__(self, remaining: Callable[[], float | None]) -> None:
        self.remaining = remaining

    def is_over(self) -> bool:
        left = self.remaining()
        return left is not None and left <= 0

    def cap(self, seconds: float) -> float:
        """Returns the timeout, or the time left if that is shorter."""
        left = self.remaining()
        return seconds if left is None else max(min(seconds, left), _SHORTEST_SECONDS)


NO_LIMIT = TimeLimit(lambda: None)

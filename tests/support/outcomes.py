"""What became of a callable under test: its value, or the exception it ended with. Either is a result to judge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self


class Ended(BaseException):
    """The test's machinery ended an act here. No handler of the product may take it for a failure of its own."""


@dataclass(frozen=True)
class Outcome:
    value: Any = None
    error: BaseException | None = None

    @classmethod
    def of(cls, act: Callable[[], Any]) -> Self:
        try:
            return cls(value=act())
        except (Exception, Ended, BaseExceptionGroup) as error:  # noqa: BLE001 (an outcome to judge, whatever it is)
            return cls(error=error)

    def get(self) -> Any:
        """The value. Raises the exception where there was one."""
        if self.error is not None:
            raise self.error
        return self.value

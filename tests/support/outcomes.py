"""The outcome of a callable under test: its return value or its exception, both of which a test can check."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self


class Aborted(BaseException):
    """The test ended an act here. Derives from BaseException so that the product doesn't handle it as a failure."""


@dataclass(frozen=True)
class Outcome:
    value: Any = None
    error: BaseException | None = None

    @classmethod
    def of(cls, act: Callable[[], Any]) -> Self:
        try:
            return cls(value=act())
        except (Exception, Aborted, BaseExceptionGroup) as error:  # noqa: BLE001 (any error is an outcome to check)
            return cls(error=error)

    def get(self) -> Any:
        """Returns the value, or raises the exception."""
        if self.error is not None:
            raise self.error
        return self.value

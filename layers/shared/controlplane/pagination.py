"""The shared list parameters and the step from a store's page to an answer's."""

import re
from typing import Annotated, Any

from fastapi import Query
from pydantic import BeforeValidator, Field

from controlplane import cursors

_DIGITS = re.compile(r"[0-9]{1,3}")


def _plain_number(value: Any) -> Any:
    """Refuses what int() would take and no client means: signs, spaces, underscores, other scripts' digits."""
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        raise ValueError("limit is a whole number from 1 to 100")
    return value


# The bounds stand before the validator, where they become minimum and maximum of the described parameter.
Limit = Annotated[
    int, Field(ge=1, le=100), BeforeValidator(_plain_number), Query(description="Page size.", examples=[50])
]
Cursor = Annotated[
    str | None,
    Query(min_length=1, max_length=1_024, description="The nextCursor of the page before.", examples=["Yk1xZ2p0"]),
]


class Walk:
    """A position in one list: operation, organization and filters bind its cursors."""

    def __init__(self, cursor: str | None, *binding: str) -> None:
        self._binding = binding
        self.after = cursors.open_sealed(binding, cursor) if cursor else None

    def cursor(self, position: str | None) -> str | None:
        """The cursor of the page after `position`, or None where there is none."""
        return cursors.seal(self._binding, position) if position else None

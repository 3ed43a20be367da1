"""The query parameters that all lists share, and conversion of positions to cursors and back."""

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from fastapi import Query
from pydantic import BeforeValidator, Field

from controlplane.platform.core import keyring

_DIGITS = re.compile(r"[0-9]{1,3}")


def _plain_number(value: Any) -> Any:
    """Rejects text that int() would accept but no client means: signs, spaces, underscores, digits of other scripts."""
    if isinstance(value, str) and not _DIGITS.fullmatch(value):
        raise ValueError("Must be a whole number from 1 to 100")
    return value


# The bounds must precede the validator to become the parameter's minimum and maximum in the OpenAPI document.
Limit = Annotated[
    int, Field(ge=1, le=100), BeforeValidator(_plain_number), Query(description="Page size.", examples=[50])
]
Cursor = Annotated[
    str | None,
    Query(min_length=1, max_length=1_024, description="The nextCursor of the page before.", examples=["Yk1xZ2p0"]),
]


class CursorCodec:
    """Converts positions in a list to cursors, which are bound to operation, organization, and filters, and back.

    `after` is the position that the client's cursor contains, or None on the first page.
    """

    def __init__(self, cursor: str | None, *binding: str) -> None:
        self._binding = binding
        self.after = keyring.open_cursor(binding, cursor) if cursor else None

    def cursor(self, position: str | None) -> str | None:
        """Returns the cursor of the page after `position`, or None if there is no next page."""
        return keyring.seal_cursor(self._binding, position) if position else None

    def cut[T](self, items: Iterable[T], limit: int, position: Callable[[T], str]) -> tuple[list[T], str | None]:
        """Returns a page of items that were read at once, sorted by position, and the cursor of the next page."""
        left = sorted((it for it in items if self.after is None or position(it) > self.after), key=position)
        return left[:limit], self.cursor(position(left[limit - 1]) if len(left) > limit else None)

"""A request's body is read in parts, up to its limit."""

from contextlib import suppress
from typing import Any

import pytest

from controlplane.core.errors import PayloadTooLarge
from controlplane.http.reader import RequestReader

PARTS: tuple[dict[str, Any], ...] = (
    {"type": "http.request", "body": b"ab", "more_body": True},
    {"type": "http.request", "more_body": True},
    {"type": "http.request", "body": b"c"},
)


def read(limit_bytes: int) -> bytes:
    left = iter(PARTS)

    async def receive() -> dict[str, Any]:
        return next(left)

    reader = RequestReader({"type": "http", "headers": []}, receive)
    with suppress(StopIteration):  # it never waits, so it ends at once
        reader.read_body(limit_bytes).send(None)
    return reader.raw_body


def test_the_parts_of_a_body_are_joined():
    assert read(3) == b"abc"


def test_the_limit_applies_to_all_parts_together():
    with pytest.raises(PayloadTooLarge):
        read(2)

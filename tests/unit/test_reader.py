"""A request's body is read in parts, up to its limit; and what is said of an unknown parameter."""

from contextlib import suppress
from typing import Any

import pytest

from controlplane.core.errors import PayloadTooLarge
from controlplane.http.reader import RequestReader, unknown_parameter

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


def test_the_known_parameters_are_listed_in_a_sentence():
    for known, listed in ("a", "a"), ("ab", "a and b"), ("abc", "a, b, and c"):
        message = unknown_parameter("x", [*known])["message"]
        assert message == f"This operation accepts {listed}, but not this parameter."

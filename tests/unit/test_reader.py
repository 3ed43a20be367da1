"""A request's body is read in parts, up to its limit; and what is said of an unknown parameter."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest

from controlplane.platform.core.errors import PayloadTooLarge
from controlplane.platform.http.reader import RequestReader, unknown_parameter

type Headers = Iterable[tuple[bytes, bytes]]

PARTS: tuple[dict[str, Any], ...] = (
    {"type": "http.request", "body": b"ab", "more_body": True},
    {"type": "http.request", "more_body": True},
    {"type": "http.request", "body": b"c"},
)


def received(parts: Iterable[dict[str, Any]], limit_bytes: int = 100, headers: Headers = ()) -> RequestReader:
    left = iter(parts)

    async def receive() -> dict[str, Any]:
        return next(left)

    reader = RequestReader({"type": "http", "headers": [*headers]}, receive)
    with suppress(StopIteration):  # it never waits, so it ends at once
        reader.read_body(limit_bytes).send(None)
    return reader


def test_the_parts_of_a_body_are_joined_and_limited_together():
    assert received(PARTS, 3).raw_body == b"abc"
    with pytest.raises(PayloadTooLarge):
        _ = received(PARTS, 2).raw_body


def test_the_case_of_a_media_type_and_of_an_encoding_doesnt_matter():
    headers = [(b"content-type", b" Application/JSON; charset=UTF-8"), (b"content-encoding", b"Identity")]
    reader = received([{"type": "http.request", "body": b"[1]"}], headers=headers)
    reader.parse_body(None)
    assert reader.content == [1]


def test_the_known_parameters_are_listed_in_a_sentence():
    for known, listed in ("a", "a"), ("ab", "a and b"), ("abc", "a, b, and c"):
        message = unknown_parameter("x", [*known])["message"]
        assert message == f"This operation accepts {listed}, but not this parameter."


def test_a_name_that_resembles_the_parameter_is_proposed():
    for given, meant in (("dry_run", "dryRun"), ("DRYRUN ", "dryRun"), ("organisation-id", "organizationId")):
        assert unknown_parameter(given, ["organizationId", "dryRun"])["message"].endswith(f" Did you mean {meant}?")
    for given in ("dry", "", "x" * 100_000, "\u0434\u0440"):
        assert "Did you mean" not in unknown_parameter(given, ["organizationId", "dryRun"])["message"]

"""The parsing cost of a 1 MB body: a hostile one costs at most five times as much as a valid one."""

from collections.abc import Callable

import pytest

from controlplane.platform.http import reader
from tests.nightly import hostile_bodies
from tests.nightly.growth import cpu_seconds, no_collections

_TIMES = 5


def least(call: Callable[[], object], attempts: int) -> float:
    return min(cpu_seconds(call) for _ in range(attempts))


def too_dear(bodies: dict[str, bytes], parse: Callable[[bytes], object]) -> dict[str, float]:
    """Returns the bodies that cost too much, with the ratio of their time to the valid body's.

    If a body seems to cost too much, both are measured again.
    """
    valid = hostile_bodies.realistic()
    found = {}
    with no_collections():
        valid_seconds = least(lambda: reader.parse_strictly(valid), 5)
        for name, body in bodies.items():
            times = least(lambda body=body: parse(body), 1) / valid_seconds  # type: ignore[misc]
            for _ in range(3):
                if times > _TIMES:
                    valid_seconds = least(lambda: reader.parse_strictly(valid), 5)
                    times = least(lambda body=body: parse(body), 2) / valid_seconds  # type: ignore[misc]
            if times > _TIMES:
                found[name] = times
    return found


def test_a_valid_body_is_read():
    body = hostile_bodies.realistic()
    assert 1_000_000 < len(body) <= hostile_bodies.SIZE
    assert len(reader.parse_strictly(body)["rows"]) > 2_000


def test_hostile_json_is_rejected_within_five_times_the_time_of_valid_json():
    for name, body in hostile_bodies.JSON.items():
        assert 900_000 < len(body) <= hostile_bodies.SIZE or "twice" in name, name
        with pytest.raises(reader.InvalidJson):
            reader.parse_strictly(body)
    assert too_dear(hostile_bodies.JSON, reader.parse_strictly) == {}


def test_hostile_forms_are_rejected_within_five_times_the_time_of_valid_json():
    for body in hostile_bodies.FORMS.values():
        with pytest.raises(ValueError, match="too long"):
            reader.parse_pairs(body, 32)
        assert (
            len(reader.parse_pairs(body.replace(b"&", b".")[: reader.MAX_FORM_BYTES // 3 * 3].rstrip(b"%f"), 32)) == 1
        )

    def parse(body: bytes) -> object:
        return reader.parse_pairs(body, 32)

    assert too_dear(hostile_bodies.FORMS, parse) == {}
    longest = {name: body[: reader.MAX_FORM_BYTES] for name, body in hostile_bodies.FORMS.items()}
    assert too_dear(longest, parse) == {}

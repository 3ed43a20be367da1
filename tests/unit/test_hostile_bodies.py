"""The parsing cost of a 1 MB body: a hostile one costs at most five times as much as a valid one."""

from collections.abc import Callable

import pytest

from controlplane.platform.core.errors import MAX_DETAILS, InvalidPayload
from controlplane.platform.http import reader
from tests.support import hostile_bodies
from tests.support.growth import cpu_seconds, no_collections

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


def test_a_form_at_the_limits_is_read():
    longest = b"a=" + b"x" * 65_534
    assert reader.parse_pairs(longest, 1) == [("a", "x" * 65_534)]
    for over, most in ((longest + b"x", 1), (b"a=1&b=2", 1)):
        with pytest.raises(ValueError, match=r"too long|fields"):
            reader.parse_pairs(over, most)


def test_objects_at_the_limits_are_read():
    assert (reader.MAX_KEYS, reader.MAX_OPENINGS) == (10_000, 50_000)
    keys = {str(number): number for number in range(reader.MAX_KEYS)}
    assert len(reader.parse_strictly(str(keys).replace("'", '"').encode())) == reader.MAX_KEYS
    lists = b"[" + b"[]," * (reader.MAX_OPENINGS - 2) + b"[]]"
    assert len(reader.parse_strictly(lists)) == reader.MAX_OPENINGS - 1
    for over in (b'{"x":1,' + str(keys).replace("'", '"').encode()[1:], b"[" + lists + b"]"):
        with pytest.raises(reader.InvalidJson, match=r"more than \d"):
            reader.parse_strictly(over)


class TestDetails:
    def test_a_few_problems_are_listed(self):
        problems = [{"code": "c", "message": "m", "path": ["a", str(number)]} for number in range(MAX_DETAILS)]
        assert InvalidPayload(details=problems).details == problems

    def test_further_problems_are_counted(self):
        problems = [{"code": "c", "message": "m", "path": []}] * (MAX_DETAILS + 1_234)
        *listed, last = InvalidPayload(details=problems).details
        assert listed == problems[:MAX_DETAILS]
        assert last == {"code": "more", "message": "1,234 more problems are not listed.", "path": []}

    def test_long_texts_are_truncated(self):
        (shown,) = InvalidPayload.at(["a" * 10**4] * 10**3, "m" * 10**4).details
        assert {shown["message"], *shown["path"]} == {"m" * 299 + "…", "a" * 299 + "…"}
        assert len(shown["path"]) == 70
        longest = {"code": "c", "message": "m" * 300, "path": ["a" * 300] * 70}
        assert InvalidPayload(details=[longest]).details == [longest]

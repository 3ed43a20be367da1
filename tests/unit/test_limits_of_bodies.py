"""Bodies at their limits are read, and a refusal lists only so many problems."""

import pytest

from controlplane.platform.core.errors import MAX_DETAILS, InvalidPayload
from controlplane.platform.http import reader


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


def test_only_some_problems_are_listed_and_long_texts_are_truncated():
    problem = {"code": "c", "message": "m", "path": ["a"]}
    assert InvalidPayload(details=[problem] * MAX_DETAILS).details == [problem] * MAX_DETAILS
    *listed, last = InvalidPayload(details=[problem] * (MAX_DETAILS + 1_234)).details
    assert listed == [problem] * MAX_DETAILS
    assert last == {"code": "more", "message": "1,234 more problems are not listed.", "path": []}
    (shown,) = InvalidPayload.at(["a" * 10**4] * 10**3, "m" * 10**4).details
    assert {shown["message"], *shown["path"]} == {"m" * 299 + "…", "a" * 299 + "…"}
    assert len(shown["path"]) == 70
    longest = {"code": "c", "message": "m" * 300, "path": ["a" * 300] * 70}
    assert InvalidPayload(details=[longest]).details == [longest]

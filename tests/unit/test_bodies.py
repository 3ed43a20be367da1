"""Bodies are read in parts, as strict JSON or a form, up to their limits, and a refusal says what is wrong."""

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.platform.core.errors import MAX_DETAILS, InvalidPayload, PayloadTooLarge
from controlplane.platform.http import reader
from controlplane.platform.http.reader import RequestReader, unknown_parameter
from tests.support.each import each

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)
NONSTANDARD = (
    b'{"a":{"b":1,"b":1}}', b"[Infinity]", b"[-Infinity]", b"[1e400]", b"[-1e999]", b'["\\ud800"]',
    b'["\\udc00\\ud800"]', b'{"\\ud800":1}', b'["\\u0000"]', b'{"a":["\\u0000"]}', b'["\x00"]', b'["\xff"]', b"[01]",
    b"[+1]", b"[.5]", b"[1,]", b"",
)  # fmt: skip


@given(VALUES, st.booleans())
def test_ordinary_values_are_parsed_like_json(value, ascii_only):
    assert reader.parse_strictly(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused_without_failing(body):
    with suppress(reader.InvalidJson):
        reader.parse_strictly(body)


def test_nonstandard_json_and_nesting_beyond_the_limit_are_refused():
    deep = [opening * depth for opening in (b"[", b'{"a":') for depth in (65, 1_000, 40_000, 200_000)]
    for body in (*NONSTANDARD, *deep):
        with pytest.raises(reader.InvalidJson):
            pytest.fail(f"{reader.parse_strictly(body)}")


@each(
    ("body", "reason"),
    [
        (b'\xef\xbb\xbf{"a":1}', "it begins with a byte order mark. Save it as UTF-8 without one"),
        ('{"a":1}'.encode("utf-16"), "it is in UTF-16. Save it as UTF-8"),
        ('{"a":"ä"}'.encode("latin-1"), "it is not valid UTF-8"),
        (b'{"name":1,\n"name":2}', 'an object has the key "name" twice'),
        (b'{"\\ud800":1,"\\ud800":2}', r'an object has the key "\ud800" twice'),
        (b'{"a":1,\n "b":2,\n}', "illegal trailing comma before end of object at line 2, column 7"),
        (b"{'a':1}", "expecting property name enclosed in double quotes at line 1, column 2"),
        (b'{"a":"x\ty"}', "invalid control character at line 1, column 8"),
        (b'{"a":"x', "unterminated string starting at line 1, column 6"),
        (b"a=1&b=2", "expecting value at line 1, column 1"),
        (b"[NaN]", "NaN is not a JSON number. Send null, or leave the field out"),
        (b"[1e999]", "a number is larger than 1.8e308, which most programs can't read"),
        (b"[" + b"1" * 1_001 + b"]", "a number has more than 1,000 digits"),
    ],
)
def test_the_message_says_what_is_wrong(body, reason):
    with pytest.raises(reader.InvalidJson) as refused:
        reader.parse_strictly(body)
    assert str(refused.value) == reason


def test_a_message_has_only_the_start_of_a_key():
    with pytest.raises(reader.InvalidJson) as refused:
        reader.parse_strictly(b'{"%(key)s":1,"%(key)s":2}' % {b"key": b"k" * 10_000})
    assert len(str(refused.value)) < 100


def test_values_up_to_the_limits_are_read_and_brackets_in_strings_dont_count():
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        assert reader.parse_strictly(opening * 63 + b"[]" + closing * 63)
        for inner in (b"[]", b"{}"):
            with pytest.raises(reader.InvalidJson, match="deeper"):
                reader.parse_strictly(b"[1," + opening * 63 + inner + closing * 63 + b"]")
    assert reader.parse_strictly(b"1" * 1_000) == int("1" * 1_000)
    texts = ["[{" * 500, '"\\[' * 100]
    assert reader.parse_strictly(json.dumps(texts).encode()) == texts
    assert reader.parse_strictly(b'["\\ud83d\\ude00"]') == ["😀"]


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
    for sent, meant in (("dry_run", "dryRun"), ("DRYRUN ", "dryRun"), ("organisation-id", "organizationId")):
        assert unknown_parameter(sent, ["organizationId", "dryRun"])["message"].endswith(f" Did you mean {meant}?")
    for sent in ("dry", "", "x" * 100_000, "\u0434\u0440"):
        assert "Did you mean" not in unknown_parameter(sent, ["organizationId", "dryRun"])["message"]

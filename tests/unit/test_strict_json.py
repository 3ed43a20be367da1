"""The parser accepts only strict JSON."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.platform.http import reader
from tests.support.each import each

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner)
    ),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_ordinary_values_are_parsed_like_json(value: object, ascii_only: bool):
    assert reader.parse_strictly(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused_without_failing(body: bytes):
    with suppress(reader.InvalidJson):
        reader.parse_strictly(body)


@each("depth", [65, 1_000, 40_000, 200_000])
@each("opening", [b"[", b'{"a":'])
def test_nesting_beyond_the_limit_is_refused(depth: int, opening: bytes):
    with pytest.raises(reader.InvalidJson):
        reader.parse_strictly(opening * depth)


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
def test_the_message_says_what_is_wrong(body: bytes, reason: str):
    with pytest.raises(reader.InvalidJson) as refused:
        reader.parse_strictly(body)
    assert str(refused.value) == reason


def test_a_message_has_only_the_start_of_a_key():
    with pytest.raises(reader.InvalidJson) as refused:
        reader.parse_strictly(b'{"%(key)s":1,"%(key)s":2}' % {b"key": b"k" * 10_000})
    assert len(str(refused.value)) < 100


def test_complete_values_are_nested_up_to_the_limit():
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        assert reader.parse_strictly(opening * 63 + b"[]" + closing * 63)
        for inner in (b"[]", b"{}"):
            with pytest.raises(reader.InvalidJson, match="deeper"):
                reader.parse_strictly(b"[1," + opening * 63 + inner + closing * 63 + b"]")


def test_a_number_with_as_many_digits_as_the_limit_is_read():
    assert reader.parse_strictly(b"1" * 1_000) == int("1" * 1_000)


def test_brackets_inside_strings_dont_count_as_nesting():
    text = json.dumps(["[{" * 500, '"\\[' * 100])
    assert reader.parse_strictly(text.encode()) == ["[{" * 500, '"\\[' * 100]


@each(
    "body",
    [
        b'{"a":1,"a":2}',
        b'{"a":{"b":1,"b":1}}',
        b"[NaN]",
        b"[Infinity]",
        b"[-Infinity]",
        b"[1e400]",
        b"[-1e999]",
        b"[" + b"1" * 1_001 + b"]",
        b'["\\ud800"]',
        b'["\\udc00\\ud800"]',
        b'{"\\ud800":1}',
        b'["\\u0000"]',
        b'{"a":["\\u0000"]}',
        b'["\x00"]',
        b'["\xff"]',
        b"\xef\xbb\xbf[]",
        b"[01]",
        b"[+1]",
        b"[.5]",
        b"['a']",
        b"[1,]",
        b"",
    ],
)
def test_nonstandard_json_is_refused(body: bytes):
    with pytest.raises(reader.InvalidJson):
        reader.parse_strictly(body)


def test_a_surrogate_pair_is_one_character():
    assert reader.parse_strictly(b'["\\ud83d\\ude00"]') == ["😀"]

"""The parser accepts only strict JSON."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.http import strict_json
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
    assert strict_json.loads(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused_without_failing(body: bytes):
    with suppress(strict_json.InvalidJson):
        strict_json.loads(body)


@each("depth", [65, 1_000, 40_000, 200_000])
@each("opening", [b"[", b'{"a":'])
def test_nesting_beyond_the_limit_is_refused(depth: int, opening: bytes):
    with pytest.raises(strict_json.InvalidJson):
        strict_json.loads(opening * depth)


def test_complete_values_are_nested_up_to_the_limit():
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        assert strict_json.loads(opening * 63 + b"[]" + closing * 63)
        for inner in (b"[]", b"{}"):
            with pytest.raises(strict_json.InvalidJson, match="deeper"):
                strict_json.loads(b"[1," + opening * 63 + inner + closing * 63 + b"]")


def test_a_number_with_as_many_digits_as_the_limit_is_read():
    assert strict_json.loads(b"1" * 1_000) == int("1" * 1_000)


def test_brackets_inside_strings_dont_count_as_nesting():
    text = json.dumps(["[{" * 500, '"\\[' * 100])
    assert strict_json.loads(text.encode()) == ["[{" * 500, '"\\[' * 100]


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
    with pytest.raises(strict_json.InvalidJson):
        strict_json.loads(body)


def test_a_surrogate_pair_is_one_character():
    assert strict_json.loads(b'["\\ud83d\\ude00"]') == ["😀"]

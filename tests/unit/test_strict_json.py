"""The parser accepts only strict JSON."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.platform.http import reader
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

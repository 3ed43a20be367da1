"""Values read from the table equal the values written to it."""

import pytest
from boto3.dynamodb.types import TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from controlplane.platform.table.legs import decode, decode_item, encode, encode_item
from tests.support.each import each

NAMES = st.sampled_from(["S", "N", "BOOL", "NULL", "M", "L", "name", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_an_item_survives_a_round_trip(item):
    assert decode_item(encode_item(item)) == item


@given(VALUES)
def test_a_value_is_encoded_as_boto3_would(value):
    assert encode(value) == TypeSerializer().serialize(value)


@each("value", [{"B": "AP8="}, {"SS": ["a"]}, {"L": [{"NS": ["1"]}]}, {"M": {"a": {"BS": []}}}])
def test_unsupported_types_are_refused(value):
    with pytest.raises(TypeError):
        decode(value)


@each("value", [1.5, b"x", {1}, object()])
def test_other_values_are_refused(value):
    with pytest.raises(TypeError):
        encode(value)

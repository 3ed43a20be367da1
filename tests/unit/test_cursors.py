"""Cursors are valid only for the list that issued them, and only if unchanged."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.platform.core import keyring
from controlplane.platform.core.errors import InvalidPayload

ORGANIZATION = "org_0123456789abcdef"
BINDING = ("listProjects", ORGANIZATION, "open")
OTHERS = (
    ("listKeys", ORGANIZATION, "open"),
    ("listProjects", "org_0123456789abcdeg", "open"),
    ("listProjects", ORGANIZATION, ""),
    ("listProjects", ORGANIZATION),
)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_cursor_returns_its_position(position):
    assert keyring.open_cursor(BINDING, keyring.seal_cursor(BINDING, position)) == position


def test_each_flipped_bit_or_changed_character_and_padding_is_refused():
    cursor = keyring.seal_cursor(BINDING, "PROJECT#01j0")
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    changed = [cursor + "="]
    for bit in range(len(raw) * 8):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        changed.append(base64.urlsafe_b64encode(flipped).decode().rstrip("="))
    for position, character in enumerate(cursor):
        changed.append(cursor[:position] + ("A" if character != "A" else "B") + cursor[position + 1 :])
    for text in changed:
        with pytest.raises(InvalidPayload):
            keyring.open_cursor(BINDING, text)


def test_another_list_organization_or_filter_is_refused():
    for binding in OTHERS:
        with pytest.raises(InvalidPayload) as refusal:
            keyring.open_cursor(binding, keyring.seal_cursor(BINDING, "PROJECT#01j0"))
        assert refusal.value.details[0]["path"] == ["cursor"]


@given(st.text())
def test_any_other_text_is_refused_without_failing(text):
    with pytest.raises(InvalidPayload):
        keyring.open_cursor(BINDING, text)

"""Cursors are valid only for the list that issued them, and only if unchanged."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.platform.core import keyring
from controlplane.platform.core.errors import InvalidPayload

BINDING = ("listProjects", "org_0123456789abcdef", "open")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_cursor_returns_its_position(position: str):
    assert keyring.open_cursor(BINDING, keyring.seal_cursor(BINDING, position)) == position


def test_each_flipped_bit_is_refused():
    cursor = keyring.seal_cursor(BINDING, "PROJECT#01j0")
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    for bit in range(len(raw) * 8):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(InvalidPayload):
            keyring.open_cursor(BINDING, base64.urlsafe_b64encode(changed).decode().rstrip("="))


def test_each_changed_character_is_refused():
    cursor = keyring.seal_cursor(BINDING, "PROJECT#01j0")
    for position, character in enumerate(cursor):
        other = "A" if character != "A" else "B"
        with pytest.raises(InvalidPayload):
            keyring.open_cursor(BINDING, cursor[:position] + other + cursor[position + 1 :])


@pytest.mark.parametrize(
    "binding",
    [
        ("listKeys", "org_0123456789abcdef", "open"),
        ("listProjects", "org_0123456789abcdeg", "open"),
        ("listProjects", "org_0123456789abcdef", ""),
        ("listProjects", "org_0123456789abcdef"),
    ],
)
def test_another_list_organization_or_filter_is_refused(binding: tuple[str, ...]):
    with pytest.raises(InvalidPayload) as refusal:
        keyring.open_cursor(binding, keyring.seal_cursor(BINDING, "PROJECT#01j0"))
    assert refusal.value.details[0]["path"] == ["cursor"]


@given(st.text())
def test_any_other_text_is_refused_without_failing(text: str):
    with pytest.raises(InvalidPayload):
        keyring.open_cursor(BINDING, text)


def test_padding_is_not_accepted_as_another_spelling():
    with pytest.raises(InvalidPayload):
        keyring.open_cursor(BINDING, keyring.seal_cursor(BINDING, "PROJECT#01j0") + "=")

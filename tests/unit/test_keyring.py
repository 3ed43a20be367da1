"""A secret makes and accepts the same tokens, cursors, codes, and records in every release, and no other cursors."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.access import idempotency
from controlplane.access.access import Access
from controlplane.access.authentication import Principal
from controlplane.platform.core import keyring, tokens
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.keyring import NoSigningSecret, Unsealable
from controlplane.platform.core.settings import SigningSecret, load
from controlplane.platform.table.rate import Counted
from tests.support.rings import NEW, use_ring

# These values were made from this secret.
SECRET = "a-signing-secret-from-before-key-rings"
REFRESH_TOKEN = "assent_rt_0123456789abcdef000000000000000000000000000000yWRf4qDks3OgY3JP8gKAVc"
SUCCESSORS = (
    "assent_at_MZPipSYolIYV2g4VsgV1SWgl2PVzBv3haazJ",
    "assent_rt_0123456789abcdef4rjEmFh1Nug4QCkZZOMP6SYWls1WJMN50FQj3p6S0xzWalsA4874",
)
BINDING, POSITION, CURSOR = ("listThings", "org_1"), "PROJECT#01j0", "k2i5Ca4gvdMvAs7egt4mSVBST0pFQ1QjMDFqMA"
USER_CODE_DIGEST = "af34dc13c105698173c85afaa494c61e188f647c6c0e60f43f6b371bbfd4c8c5"
RECORD = "IDEMPOTENCY#453df0208f242a44bdc33285db110b6e3b9489d4749b5ed7af58a1b17e23ed38"
API_KEY = "assent_KraA8IGTwkZW5Pp3E4urc66gb0XCDm1tYE9v"
# A sealed text, which is one byte longer than a block of the stream.
WEBHOOK_SECRET = "whsec_0123456789abcdefghijklmnopq"
SEALED = "AcNxyuyVQkZyXa6mk6iekEQF1suh99sEspAyOJe8yhGj8u5tZD+ZtqHksT9GVln6sere5ZKaA7kqlGsHwlLFSb4="


@pytest.mark.parametrize(
    "secret",
    [
        load({"TABLE_NAME": "assent", "SIGNING_SECRET": SECRET}).signing_secret,
        SigningSecret(current=SECRET, next=NEW),
        SigningSecret(current=NEW, previous=SECRET),
    ],
    ids=["a secret", "while a key is added", "after the switch"],
)
def test_signatures_remain_valid_while_keys_are_rotated(secret, monkeypatch):
    use_ring(monkeypatch, secret)
    assert tokens.family_of(REFRESH_TOKEN) == "0123456789abcdef"
    assert SUCCESSORS in tokens.successors_of(REFRESH_TOKEN)
    assert keyring.open_cursor(BINDING, CURSOR) == POSITION
    assert USER_CODE_DIGEST in [key.digest("user code", "BCDF-GHJK") for key in keyring.ring()]
    access: Access[None] = Access(Principal("api_key", (), key_id="key_1", organization_id="org_1"), Counted(1, 1, 1))
    record = idempotency.Record.of(access, "createThing", "k")
    (key,) = (key for key in record.seeds if key.pk == RECORD)
    assert record.secret("assent", key, "0" * 32) == API_KEY
    assert keyring.unseal("web_1", SEALED) == (WEBHOOK_SECRET, secret.current == SECRET)
    with pytest.raises(Unsealable):
        keyring.unseal("web_2", SEALED)


def test_the_current_key_signs(monkeypatch):
    use_ring(monkeypatch, SigningSecret(current=SECRET, next=NEW))
    assert tokens.successors_of(REFRESH_TOKEN)[0] == SUCCESSORS
    assert keyring.seal_cursor(BINDING, POSITION) == CURSOR
    assert tokens.keyed_digest("user code", "BCDF-GHJK") == USER_CODE_DIGEST


def test_a_text_of_any_length_is_sealed():
    for length in range(71):
        assert keyring.unseal("web_1", keyring.seal("web_1", "x" * length)) == ("x" * length, True)


def test_a_text_is_never_sealed_in_the_same_way_twice():
    """A stream that is used for two texts reveals where they differ."""
    assert keyring.seal("web_1", "x" * 32) != keyring.seal("web_1", "x" * 32)


def test_a_function_without_the_secret_fails_with_a_telling_name(monkeypatch):
    use_ring(monkeypatch, None)
    with pytest.raises(NoSigningSecret):
        tokens.keyed_digest("form", "x")


ORGANIZATION = "org_0123456789abcdef"
LISTED = ("listProjects", ORGANIZATION, "open")
OTHERS = (
    ("listKeys", ORGANIZATION, "open"),
    ("listProjects", "org_0123456789abcdeg", "open"),
    ("listProjects", ORGANIZATION, ""),
    ("listProjects", ORGANIZATION),
)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_cursor_returns_its_position(position):
    assert keyring.open_cursor(LISTED, keyring.seal_cursor(LISTED, position)) == position


def test_each_flipped_bit_or_changed_character_and_padding_is_refused():
    cursor = keyring.seal_cursor(LISTED, "PROJECT#01j0")
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
            keyring.open_cursor(LISTED, text)


def test_another_list_organization_or_filter_is_refused():
    for binding in OTHERS:
        with pytest.raises(InvalidPayload) as refusal:
            keyring.open_cursor(binding, keyring.seal_cursor(LISTED, "PROJECT#01j0"))
        assert refusal.value.details[0]["path"] == ["cursor"]


@given(st.text())
def test_any_other_text_is_refused_without_failing(text):
    with pytest.raises(InvalidPayload):
        keyring.open_cursor(LISTED, text)

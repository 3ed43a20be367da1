"""Secrets: their format, their checksum, and the part that may be shown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.platform.core import tokens
from tests.support.rings import SWITCHED, use_ring

FAMILY = "0123456789abcdef"
KINDS = (tokens.ACCESS, tokens.SESSION, tokens.DEVICE_CODE, "")


def changed(text: str, position: int) -> str:
    """Returns the text with another character at the position."""
    return text[:position] + ("A" if text[position] != "A" else "B") + text[position + 1 :]


def test_a_secret_has_a_prefix_30_random_characters_and_a_checksum():
    secret = tokens.mint("assent")
    assert re.fullmatch(r"assent_[0-9A-Za-z]{36}", secret)
    assert [tokens.prefix_of(it) for it in (secret, tokens.mint("assent_at"))] == ["assent", "assent_at"]
    assert tokens.start_of(secret) == secret[: len("assent_") + 4]
    assert len(tokens.placeholder("assent")) == len(secret)


def test_only_a_secret_with_a_wrong_end_is_incomplete():
    secret = tokens.mint("assent")
    assert [tokens.is_incomplete(text) for text in (secret[:-1], secret, secret[1:])] == [True, False, False]
    others = (tokens.mint_refresh("0" * 16), tokens.mint("assent" + tokens.DEVICE_CODE))
    assert not any(tokens.is_incomplete(other[:-1]) for other in others)


def test_derived_secrets_and_digests_stay_the_same():
    secret = "assent_rKXfjwQ8S8Y6GQBa3QER4pnnlENJad3GEGSd"
    assert (tokens.prefix_of(secret), tokens.mint_from("assent", b"seed")) == ("assent", secret)
    assert tokens.digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_changed_or_truncated_secret_is_refused():
    secret = tokens.mint("assent")
    wrong = [changed(secret, position) for position in range(len("assent_"), len(secret))]
    wrong += [secret[:-cut] for cut in range(1, len(secret))]
    assert {tokens.prefix_of(it) for it in wrong} == {None}


@given(st.text() | st.sampled_from(["_", "assent_", "assent_" + "é" * 36, "ASSENT_" + "a" * 36, "a" * 100_000]))
def test_other_text_is_no_secret(text):
    assert (tokens.prefix_of(text), tokens.family_of(text)) == (None, None)


def test_kinds_of_secrets_cant_pass_for_each_other():
    for kind in KINDS:
        secret = tokens.mint("assent" + kind)
        assert tokens.prefix_of(secret) == "assent" + kind
        others = [secret.replace(f"assent{kind}_", f"assent{other}_") for other in KINDS if other != kind]
        assert {tokens.prefix_of(it) for it in others} == {None}


def test_a_refresh_token_names_its_family_and_each_change_is_detected():
    token = tokens.mint_refresh(FAMILY)
    assert re.fullmatch(rf"assent_rt_{FAMILY}[0-9A-Za-z]{{52}}", token)
    assert (tokens.family_of(token), tokens.prefix_of(token)) == (FAMILY, None)
    assert {tokens.family_of(changed(token, it)) for it in range(len("assent_rt_"), len(token))} == {None}
    for text in ("", "assent_rt_", "assent_rt_" + "\u00e9" * 68, "acme_rt_" + "0" * 68, "a" * 100_000):
        assert tokens.family_of(text) is None
        with pytest.raises(LookupError):
            tokens.successors_of(text)


def test_successors_are_deterministic_of_the_same_family_and_never_repeat():
    token = tokens.mint_refresh(FAMILY)
    ((access_token, successor),) = tokens.successors_of(token)
    assert tokens.successors_of(token) == [(access_token, successor)]
    assert (tokens.prefix_of(access_token), tokens.family_of(successor)) == ("assent_at", FAMILY)
    assert access_token[-36:-6] not in successor
    chain = [token]
    for _ in range(100):
        chain.append(tokens.successors_of(chain[-1])[0][1])
    assert len({*chain}) == 101


def test_refresh_tokens_and_keyed_digests_need_the_secret_and_the_purpose(monkeypatch):
    token, found = tokens.mint_refresh(FAMILY), tokens.keyed_digest("user code", "BCDF-GHJK")
    assert re.fullmatch(r"[0-9a-f]{64}", found)
    assert found == tokens.keyed_digest("user code", "BCDF-GHJK") != tokens.keyed_digest("another", "BCDF-GHJK")
    use_ring(monkeypatch, SWITCHED)
    assert found != tokens.keyed_digest("user code", "BCDF-GHJK")
    assert tokens.family_of(token) is None

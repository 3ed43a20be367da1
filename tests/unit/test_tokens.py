"""Secrets: their format, their checksum, and the part that may be shown."""

import re

import pytest

from controlplane.platform.core import tokens
from tests.support.each import each
from tests.support.rings import SWITCHED, use_ring


def test_a_secret_has_a_prefix_30_random_characters_and_a_checksum():
    assert re.fullmatch(r"assent_[0-9A-Za-z]{36}", tokens.mint("assent"))


def test_a_secrets_prefix_is_returned():
    assert tokens.prefix_of(tokens.mint("assent")) == "assent"
    assert tokens.prefix_of(tokens.mint("assent_at")) == "assent_at"


def test_only_a_secret_with_a_wrong_end_is_incomplete():
    secret = tokens.mint("assent")
    assert [tokens.is_incomplete(text) for text in (secret[:-1], secret, secret[1:])] == [True, False, False]
    others = (tokens.mint_refresh("0" * 16), tokens.mint("assent" + tokens.DEVICE_CODE))
    assert not any(tokens.is_incomplete(other[:-1]) for other in others)


def test_a_placeholder_is_as_long_as_a_secret():
    assert len(tokens.placeholder("assent")) == len(tokens.mint("assent"))


def test_a_derived_secret_stays_the_same():
    secret = "assent_rKXfjwQ8S8Y6GQBa3QER4pnnlENJad3GEGSd"
    assert tokens.prefix_of(secret) == "assent"
    assert tokens.mint_from("assent", b"seed") == secret


def test_every_changed_character_is_detected():
    secret = tokens.mint("assent")
    for position in range(len("assent_"), len(secret)):
        other = "A" if secret[position] != "A" else "B"
        assert tokens.prefix_of(secret[:position] + other + secret[position + 1 :]) is None


@each("cut", range(1, 43))
def test_a_truncated_secret_is_refused(cut: int):
    assert tokens.prefix_of(tokens.mint("assent")[:-cut]) is None


@each("text", ["", "_", "assent_", "assent_" + "é" * 36, "ASSENT_" + "a" * 36, "a" * 100_000])
def test_other_text_has_no_prefix(text: str):
    assert tokens.prefix_of(text) is None


def test_an_api_key_cant_pass_for_a_user_token_with_the_same_characters():
    key = tokens.mint("assent")
    assert tokens.prefix_of(key.replace("assent_", "assent_at_")) is None


def test_lists_show_the_prefix_and_four_characters():
    secret = tokens.mint("assent")
    assert tokens.start_of(secret) == secret[: len("assent_") + 4]


def test_the_digest_is_sha256_in_hexadecimal():
    assert tokens.digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


class TestRefreshTokens:
    """They end in a MAC: only issued tokens are accepted, and each has one successor."""

    def test_refresh_tokens_name_their_family(self):
        token = tokens.mint_refresh("0123456789abcdef")
        assert re.fullmatch(r"assent_rt_0123456789abcdef[0-9A-Za-z]{52}", token)
        assert tokens.family_of(token) == "0123456789abcdef"
        assert tokens.prefix_of(token) is None

    def test_every_changed_character_of_a_refresh_token_is_detected(self):
        token = tokens.mint_refresh("0123456789abcdef")
        for position in range(len("assent_rt_"), len(token)):
            other = "a" if token[position] != "a" else "b"
            assert tokens.family_of(token[:position] + other + token[position + 1 :]) is None

    @each("text", ["", "assent_rt_", "assent_rt_" + "\u00e9" * 68, "acme_rt_" + "0" * 68, "a" * 100_000])
    def test_a_token_that_was_never_issued_has_no_family(self, text: str):
        assert tokens.family_of(text) is None
        with pytest.raises(LookupError):
            tokens.successors_of(text)

    def test_another_signing_secret_invalidates_refresh_tokens(self, monkeypatch: pytest.MonkeyPatch):
        token = tokens.mint_refresh("0123456789abcdef")
        use_ring(monkeypatch, SWITCHED)
        assert tokens.family_of(token) is None

    def test_successors_are_deterministic_and_of_the_same_family(self):
        token = tokens.mint_refresh("0123456789abcdef")
        ((access_token, successor),) = tokens.successors_of(token)
        assert tokens.successors_of(token) == [(access_token, successor)]
        assert tokens.prefix_of(access_token) == "assent_at"
        assert tokens.family_of(successor) == "0123456789abcdef"
        assert len({token, successor, tokens.successors_of(successor)[0][1]}) == 3
        assert access_token[-36:-6] not in successor

    def test_a_long_chain_never_repeats(self):
        chain = [tokens.mint_refresh("0123456789abcdef")]
        for _ in range(100):
            chain.append(tokens.successors_of(chain[-1])[0][1])
        assert len(set(chain)) == 101


def test_kinds_of_secrets_cant_pass_for_each_other():
    for kind in (tokens.ACCESS, tokens.SESSION, tokens.DEVICE_CODE):
        secret = tokens.mint("assent" + kind)
        assert tokens.prefix_of(secret) == "assent" + kind
        for other in (tokens.ACCESS, tokens.SESSION, tokens.DEVICE_CODE, ""):
            if other != kind:
                assert tokens.prefix_of(secret.replace(kind + "_", other + "_")) is None


def test_a_keyed_digest_needs_the_secret_and_the_purpose(monkeypatch: pytest.MonkeyPatch):
    found = tokens.keyed_digest("user code", "BCDF-GHJK")
    assert re.fullmatch(r"[0-9a-f]{64}", found)
    assert found == tokens.keyed_digest("user code", "BCDF-GHJK")
    assert found != tokens.keyed_digest("another", "BCDF-GHJK")
    use_ring(monkeypatch, SWITCHED)
    assert found != tokens.keyed_digest("user code", "BCDF-GHJK")

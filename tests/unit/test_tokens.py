"""Secrets: their form, their checksum, and what of them may be shown."""

import re

import pytest

from controlplane import tokens


def test_a_secret_has_its_prefix_thirty_random_characters_and_a_checksum():
    assert re.fullmatch(r"assent_[0-9A-Za-z]{36}", tokens.mint("assent"))


def test_its_prefix_is_read_back():
    assert tokens.prefix_of(tokens.mint("assent")) == "assent"
    assert tokens.prefix_of(tokens.mint("assent_at")) == "assent_at"


def test_every_single_changed_character_is_noticed():
    secret = tokens.mint("assent")
    for position in range(len("assent_"), len(secret)):
        other = "A" if secret[position] != "A" else "B"
        assert tokens.prefix_of(secret[:position] + other + secret[position + 1 :]) is None


@pytest.mark.parametrize("cut", range(1, 43))
def test_a_truncated_one_is_refused(cut: int):
    assert tokens.prefix_of(tokens.mint("assent")[:-cut]) is None


@pytest.mark.parametrize("text", ["", "_", "assent_", "assent_" + "é" * 36, "ASSENT_" + "a" * 36, "a" * 100_000])
def test_what_is_no_secret_has_no_prefix(text: str):
    assert tokens.prefix_of(text) is None


def test_a_key_cannot_pass_for_a_user_token_of_the_same_characters():
    key = tokens.mint("assent")
    assert tokens.prefix_of(key.replace("assent_", "assent_at_")) is None


def test_what_lists_show_is_the_prefix_and_four_characters():
    secret = tokens.mint("assent")
    assert tokens.start_of(secret) == secret[: len("assent_") + 4]


def test_the_digest_is_sha256_in_hexadecimal():
    assert tokens.digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

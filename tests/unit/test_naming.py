"""Valid names and email addresses, and when two addresses are the same."""

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from controlplane.platform.core.naming import MAX_EMAIL_LENGTH, Name, clean_name, is_email, normalize_email

NAME: TypeAdapter[str] = TypeAdapter(Name)
PATTERN = re.compile(NAME.json_schema()["pattern"])
NAMES = (
    "x", "x" * 100, f" {'x' * 100}\t\n", "Ромашка", "A\u0301cme", "\U0001f469\u200d\U0001f680 Rockets", "\ue000",
    "日本",
)  # fmt: skip
NO_NAMES = (
    "", " ", "\t\n", "x" * 101, "a\nb", "a\x00", "a\x9fb", "a\x7fb", "a\u2028b", "a\u202eb", "a\u2066b", "a\u2069b",
    "\xad", "\u034f", "\u061c", "\u115f\u1160", "\u17b4\u17b5", "\u180b\u180f", "\u200b\u200d", "\u2060", "\u3164",
    "\u2800", "\ufe00\ufe0f", "\ufeff", "\uffa0",
)  # fmt: skip


def test_a_name_matches_the_pattern_if_it_is_valid():
    for text in NAMES:
        assert NAME.validate_python(text) == clean_name(text) == text.strip()
        assert PATTERN.search(text), ascii(text)
    for text in NO_NAMES:
        with pytest.raises(ValidationError):
            pytest.fail(ascii(NAME.validate_python(text)))
        assert (clean_name(text), PATTERN.search(text)) == (None, None), ascii(text)


KELVIN = "\u212aate@corp.example"
ACCEPTED = (
    "ada@example.com", "Ada.Lovelace+x@sub.example.co.uk", "!#$%&'*+/=?^_`{|}~-@example.com", "a@b.c2c",
    "ada@xn--bcher-kva.example", f"{'a' * 64}@example.com", f"a@{'b' * 63}.com",
)  # fmt: skip
REJECTED = (
    "", "ada", "@example.com", "ada@", "ada@example", "ada@example.123", "ada@@example.com",
    "ada@example.com@example.com", ".ada@example.com", "ada.@example.com", "a..da@example.com", "ada@-example.com",
    "ada@example-.com", "ada@exa_mple.com", "ada@.example.com", "ada@example.com.", " ada@example.com",
    "ada@example.com\n", '"ada"@example.com', "ada@[192.0.2.1]", KELVIN, "\u00fcnal@example.com",
    "ada@ex\u00e4mple.com", "ada@example.\u0661\u0662", f"{'a' * 65}@example.com", f"a@{'b' * 64}.com",
    f"a@{'b.' * 126}com",
)  # fmt: skip


def test_only_dot_atoms_at_host_names_are_accepted():
    assert [email for email in ACCEPTED if not is_email(email)] == []
    assert [email for email in REJECTED if is_email(email)] == []


def test_an_address_has_at_most_255_characters():
    assert MAX_EMAIL_LENGTH == 255
    domain = f"{'b' * 60}.{'c' * 60}.{'d' * 60}"
    room = MAX_EMAIL_LENGTH - len(f"{'a' * 64}@{domain}.")
    assert is_email(f"{'a' * 64}@{domain}.{'e' * room}")
    assert not is_email(f"{'a' * 64}@{domain}.{'e' * (room + 1)}")


def test_only_ascii_letters_are_lowercased():
    assert normalize_email(" Ada@EXAMPLE.com ") == "ada@example.com"
    assert normalize_email(KELVIN) == KELVIN

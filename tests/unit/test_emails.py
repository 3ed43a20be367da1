"""Validation of email addresses, and when two addresses are the same."""

from controlplane.platform.core.naming import MAX_EMAIL_LENGTH, is_email, normalize_email

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

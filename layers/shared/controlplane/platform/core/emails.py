"""Validation and normalization of email addresses.

Identities, accounts, invitations, and operator commands all use this module. Both functions take linear time.
"""

import re
import string

# From the API's description. The domain then has at most 253 characters, as in the DNS.
MAX_LENGTH = 255
# RFC 5321 section 4.5.3.1.
_MAX_LOCAL_LENGTH = 64
# The forms of RFC 5321's Mailbox that providers use: a dot-atom and a host name with a top-level domain. Quoted local
# parts, address literals, and non-ASCII characters are rejected; internationalized domains must be in xn-- form.
_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]++")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
# ASCII only: Unicode maps other letters to ASCII (the Kelvin sign becomes k), so two people could share an account.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def is_email(text: str) -> bool:
    """Returns whether the text is an email address that this service accepts."""
    if len(text) > MAX_LENGTH:
        return False
    local, _, domain = text.partition("@")
    labels = domain.split(".")
    return (
        len(local) <= _MAX_LOCAL_LENGTH
        and all(_ATOM.fullmatch(atom) for atom in local.split("."))
        and len(labels) > 1
        and all(_LABEL.fullmatch(label) for label in labels)
        and not labels[-1].isdigit()
    )


def normalize_email(email: str) -> str:
    """Returns the form of the address that is compared and used in keys: ASCII letters in lowercase."""
    return email.strip().translate(_LOWER)

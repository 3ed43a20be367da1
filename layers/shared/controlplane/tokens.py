"""Bearer secrets: prefix, 30 random base-62 characters (178 bits) and a 6-character checksum.

Only the SHA-256 of a secret is stored, which is enough for a secret of that entropy. The checksum refuses a truncated
or mistyped one without a look at the table.
"""

import hashlib
import re
import secrets
import string
import zlib

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_LENGTH, _CHECK_LENGTH = 30, 6
SHOWN_LENGTH = 4

_FORM = re.compile(r"([a-z][a-z0-9-]*(?:_at)?)_([0-9A-Za-z]{30})([0-9A-Za-z]{6})")


def _checksum(text: str) -> str:
    value, out = zlib.crc32(text.encode()), ""
    for _ in range(_CHECK_LENGTH):
        value, digit = divmod(value, 62)
        out = _ALPHABET[digit] + out
    return out


def mint(prefix: str) -> str:
    """A new secret that starts with `prefix` and an underscore."""
    body = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_LENGTH))
    return f"{prefix}_{body}{_checksum(prefix + body)}"


def prefix_of(secret: str) -> str | None:
    """The prefix of a well-formed secret, or None where form or checksum is wrong."""
    match = _FORM.fullmatch(secret)
    if match is None or _checksum(match[1] + match[2]) != match[3]:
        return None
    return match[1]


def digest(secret: str) -> str:
    """What is stored in place of the secret: SHA-256 in hexadecimal."""
    return hashlib.sha256(secret.encode()).hexdigest()


def start_of(secret: str) -> str:
    """The part of a key that lists show, so that a person recognises it: the prefix and four characters."""
    prefix, _, body = secret.rpartition("_")
    return f"{prefix}_{body[:SHOWN_LENGTH]}"

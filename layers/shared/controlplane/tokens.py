"""Bearer secrets: prefix, 30 random base-62 characters (178 bits) and a 6-character checksum.

Only the SHA-256 of a secret is stored, which is enough for a secret of that entropy. The checksum refuses a truncated
or mistyped one without a look at the table.

A refresh token also names its family, and ends in a MAC instead: what its reuse sets off, no guess may set off.
"""

import hashlib
import hmac
import re
import secrets
import string
import zlib

from controlplane import keyring
from controlplane.keyring import SigningKey
from controlplane.settings import settings

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_LENGTH, _CHECK_LENGTH = 30, 6
SHOWN_LENGTH = 4

# What stands behind the brand in the prefix of a secret that is no API key.
ACCESS = "_at"
REFRESH = "_rt"
SESSION = "_st"
DEVICE_CODE = "_dc"

_FORM = re.compile(r"([a-z][a-z0-9-]*(?:_(?:at|st|dc))?)_([0-9A-Za-z]{30})([0-9A-Za-z]{6})")
_MAC_LENGTH = 22
_REFRESH_FORM = re.compile(r"[a-z][a-z0-9-]*_rt_([0-9a-z]{16})[0-9A-Za-z]{30}[0-9A-Za-z]{22}")


def _base62(value: int, length: int) -> str:
    """The lowest `length` digits of the number."""
    out = ""
    for _ in range(length):
        value, digit = divmod(value, 62)
        out = _ALPHABET[digit] + out
    return out


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECK_LENGTH)


def _random() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_LENGTH))


def _checked(prefix: str, body: str) -> str:
    return f"{prefix}_{body}{_checksum(prefix + body)}"


def mint(prefix: str) -> str:
    """A new secret that starts with `prefix` and an underscore."""
    return _checked(prefix, _random())


def mint_from(prefix: str, seed: bytes) -> str:
    """The secret that the seed gives: always the same one, which need not be stored to be shown again."""
    return _checked(prefix, _base62(int.from_bytes(hmac.digest(seed, prefix.encode(), "sha512")), _RANDOM_LENGTH))


def _sealed(key: SigningKey, family: str, body: str) -> str:
    text = f"{settings.service_brand}{REFRESH}_{family}{body}"
    return text + _base62(key.number("refresh token", text), _MAC_LENGTH)


def mint_refresh(family: str) -> str:
    """The first refresh token of a family, whose id is 16 characters of digits and lower-case letters."""
    return _sealed(keyring.current(), family, _random())


def family_of(refresh_token: str) -> str | None:
    """The family of a refresh token that a key of the ring issued, or None for anything else. Nothing is looked up."""
    match = _REFRESH_FORM.fullmatch(refresh_token)
    if match is None:
        return None
    body = refresh_token[-_MAC_LENGTH - _RANDOM_LENGTH : -_MAC_LENGTH]
    issued = any(hmac.compare_digest(_sealed(key, match[1], body), refresh_token) for key in keyring.ring())
    return match[1] if issued else None


def successors_of(refresh_token: str) -> list[tuple[str, str]]:
    """The access token and the refresh token that follow it, for each key of the ring, the current one first.

    They are derived from the token and a signing key, so that they can be returned again without being stored. During
    a rotation another version of the function may have derived them from the other key. Raises LookupError if the
    token was never issued.
    """
    family = family_of(refresh_token)
    if family is None:
        raise LookupError("only a refresh token has successors")
    return [
        (
            _checked(f"{settings.service_brand}{ACCESS}", _derived(key, "access token after", refresh_token)),
            _sealed(key, family, _derived(key, "refresh token after", refresh_token)),
        )
        for key in keyring.ring()
    ]


def _derived(key: SigningKey, purpose: str, secret: str) -> str:
    return _base62(key.number(purpose, secret), _RANDOM_LENGTH)


def keyed_digest(purpose: str, text: str) -> str:
    """The digest by the current key. To verify one, use `keyring.signer_of`; to look one up, every key of the ring."""
    return keyring.current().digest(purpose, text)


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

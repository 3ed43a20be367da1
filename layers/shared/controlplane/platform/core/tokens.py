"""Bearer secrets: prefix, 30 random base-62 characters (178 bits) and a 6-character checksum.

Only the SHA-256 of a secret is stored, which is enough for a secret of that entropy. The checksum detects a truncated
or mistyped secret without reading the table.

A refresh token also contains the id of its family, and ends in a MAC instead of a checksum: reuse of an old token
triggers a reaction that a guessed token must not trigger.
"""

import hashlib
import hmac
import re
import secrets
import string
import zlib

from controlplane.platform.core import acting, keyring
from controlplane.platform.core.keyring import SigningKey
from controlplane.platform.core.settings import settings

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_LENGTH, _CHECK_LENGTH = 30, 6
_SHOWN_LENGTH = 4
_PLACEHOLDER = "DryRunWithoutSecret"

# Follows the brand in the prefix of a secret. API keys have no such suffix.
ACCESS = "_at"
REFRESH = "_rt"
SESSION = "_st"
DEVICE_CODE = "_dc"

_PATTERN = re.compile(r"([a-z][a-z0-9-]*(?:_(?:at|st|dc))?)_([0-9A-Za-z]{30})([0-9A-Za-z]{6})")
_MAC_LENGTH = 22
_REFRESH_PATTERN = re.compile(r"[a-z][a-z0-9-]*_rt_([0-9a-z]{16})[0-9A-Za-z]{30}[0-9A-Za-z]{22}")


def _base62(value: int, length: int) -> str:
    """Returns the lowest `length` base-62 digits of the number."""
    digits = ""
    for _ in range(length):
        value, digit = divmod(value, 62)
        digits = _ALPHABET[digit] + digits
    return digits


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECK_LENGTH)


def _random_body() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_LENGTH))


def _with_checksum(prefix: str, body: str) -> str:
    return f"{prefix}_{body}{_checksum(prefix + body)}"


def mint(prefix: str) -> str:
    """Returns a new secret that starts with `prefix` and an underscore, or a placeholder in a dry run."""
    if acting.is_dry_run():
        return placeholder(prefix)
    return _with_checksum(prefix, _random_body())


def placeholder(prefix: str) -> str:
    """Returns a placeholder in the form of a secret. It never authenticates: its checksum is wrong."""
    return f"{prefix}_{_PLACEHOLDER:0<{_RANDOM_LENGTH + _CHECK_LENGTH}}"


def mint_from(prefix: str, seed: bytes) -> str:
    """Derives a secret from the seed. It is deterministic, so the secret can be shown again without being stored."""
    return _with_checksum(prefix, _base62(int.from_bytes(hmac.digest(seed, prefix.encode(), "sha512")), _RANDOM_LENGTH))


def _refresh_token(key: SigningKey, family: str, body: str) -> str:
    text = f"{settings.service_brand}{REFRESH}_{family}{body}"
    return text + _base62(key.number("refresh token", text), _MAC_LENGTH)


def mint_refresh(family: str) -> str:
    """Returns the first refresh token of a family. The family's id is 16 digits and lowercase letters."""
    return _refresh_token(keyring.current(), family, _random_body())


def family_of(refresh_token: str) -> str | None:
    """Returns the family of a refresh token that a key of the ring issued, or None. Doesn't access the table."""
    match = _REFRESH_PATTERN.fullmatch(refresh_token)
    if match is None:
        return None
    body = refresh_token[-_MAC_LENGTH - _RANDOM_LENGTH : -_MAC_LENGTH]
    is_issued = any(hmac.compare_digest(_refresh_token(key, match[1], body), refresh_token) for key in keyring.ring())
    return match[1] if is_issued else None


def successors_of(refresh_token: str) -> list[tuple[str, str]]:
    """Returns the access token and refresh token that replace it, for each key of the ring, the current key first.

    They are derived from the token and a signing key, so they can be returned again without being stored. During a
    rotation, another version of the function may have derived them from the other key. Raises LookupError if the token
    was never issued.
    """
    family = family_of(refresh_token)
    if family is None:
        raise LookupError("only a refresh token has successors")
    return [
        (
            _with_checksum(f"{settings.service_brand}{ACCESS}", _derive_body(key, "access token after", refresh_token)),
            _refresh_token(key, family, _derive_body(key, "refresh token after", refresh_token)),
        )
        for key in keyring.ring()
    ]


def _derive_body(key: SigningKey, purpose: str, secret: str) -> str:
    return _base62(key.number(purpose, secret), _RANDOM_LENGTH)


def keyed_digest(purpose: str, text: str) -> str:
    """Returns the digest under the current key.

    To verify a digest, use `keyring.signer_of`. To look one up, try every key of the ring.
    """
    return keyring.current().digest(purpose, text)


def prefix_of(secret: str) -> str | None:
    """Returns the prefix of a well-formed secret, or None if its format or checksum is wrong."""
    match = _PATTERN.fullmatch(secret)
    if match is None or _checksum(match[1] + match[2]) != match[3]:
        return None
    return match[1]


def is_incomplete(secret: str) -> bool:
    """Returns True if the text begins like an API key, access token, or session, but its format or checksum is wrong.

    Other secrets of this service aren't credentials of a request.
    """
    brand = settings.service_brand
    others = (f"{brand}{REFRESH}_", f"{brand}{DEVICE_CODE}_")
    return secret.startswith(f"{brand}_") and not secret.startswith(others) and prefix_of(secret) is None


def digest(secret: str) -> str:
    """Returns the SHA-256 of the secret in hexadecimal, which is stored in its place."""
    return hashlib.sha256(secret.encode()).hexdigest()


def start_of(secret: str) -> str:
    """Returns the part of an API key that lists show so that people recognize it: the prefix and four characters."""
    prefix, _, body = secret.rpartition("_")
    return f"{prefix}_{body[:_SHOWN_LENGTH]}"

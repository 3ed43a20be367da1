"""The signing secret as a ring of one or two keys: the current key signs, and every key of the ring verifies.

During a rotation, two versions of a function run at the same time: one signs with the old key and one with the new key.
Both have both keys, so each accepts what the other issued. Values that are stored under a keyed digest must therefore
be looked up under every key of the ring. docs/decisions/0038-the-signing-secret-is-a-ring-of-two-keys.md has the steps.

The ring also seals the cursors of lists, and short secrets that have to be read again.
"""

import base64
import hmac
import secrets
from itertools import chain, count
from typing import NamedTuple

from controlplane.platform.core.errors import UnknownCursor
from controlplane.platform.core.settings import settings

_NONCE_LENGTH, _MAC_LENGTH = 16, 16


class NoSigningSecret(Exception):
    """The function uses the signing secret without having it. Add SIGNING_SECRET to its variables in template.yaml."""


class Unsealable(Exception):
    """No key of the ring sealed the text: the key was removed from the ring, or the text belongs to another context."""


class Opened(NamedTuple):
    """The text, and whether the current key sealed it."""

    text: str
    is_current: bool


class SigningKey:
    """One key of the ring. Its secret never leaves this object."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def number(self, purpose: str, text: str) -> int:
        """Returns a number that can't be computed without the key. Different purposes give unrelated numbers."""
        return int.from_bytes(hmac.digest(self._secret, f"{purpose}\0{text}".encode(), "sha512"))

    def digest(self, purpose: str, text: str) -> str:
        """Returns 64 hexadecimal digits of the number: a MAC, or a digest of a text too short for a plain hash."""
        return f"{self.number(purpose, text):0128x}"[:64]

    def mac(self, message: bytes) -> bytes:
        """Returns the HMAC-SHA256 of the message, which must contain its own purpose."""
        return hmac.digest(self._secret, message, "sha256")


def ring() -> tuple[SigningKey, ...]:
    """Returns the keys that verify, the current key first. Raises NoSigningSecret."""
    secret = settings.signing_secret
    if secret is None:
        raise NoSigningSecret
    return tuple(map(SigningKey, secret.keys))


def current() -> SigningKey:
    """Returns the key that signs. Raises NoSigningSecret."""
    return ring()[0]


def signer_of(purpose: str, text: str, digest: str) -> SigningKey | None:
    """Returns the key of the ring that created this digest of the text, or None."""
    given = digest.encode()
    return next((key for key in ring() if hmac.compare_digest(key.digest(purpose, text).encode(), given)), None)


def _cursor_mac(key: SigningKey, binding: tuple[str, ...], position: bytes) -> bytes:
    return key.mac(b"\0".join([b"cursor", *(part.encode() for part in binding), position]))[:_MAC_LENGTH]


def seal_cursor(binding: tuple[str, ...], position: str) -> str:
    """Returns an opaque cursor for `position` (a sort key) that is valid only for the same binding.

    binding: the operation, the organization, and the filters, which its MAC covers. The cursor never contains the
    partition, which is derived from the caller's access in every request.
    """
    raw = position.encode()
    return base64.urlsafe_b64encode(_cursor_mac(current(), binding, raw) + raw).decode().rstrip("=")


def open_cursor(binding: tuple[str, ...], cursor: str) -> str:
    """Returns the position. Raises UnknownCursor if this list didn't issue it."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        raw = b""
    mac, position = raw[:_MAC_LENGTH], raw[_MAC_LENGTH:]
    # Comparing with the re-encoded text rejects unused bits, and characters that decoding ignores: each cursor has only
    # one spelling.
    canonical = base64.urlsafe_b64encode(raw).decode().rstrip("=") == cursor
    issued = any(hmac.compare_digest(mac, _cursor_mac(key, binding, position)) for key in ring())
    if not canonical or not issued:
        raise UnknownCursor
    return position.decode()


def seal(context: str, text: str) -> str:
    """Returns the encrypted text, which is bound to a context, such as the id of its item.

    The stream of HMAC-SHA256 blocks is used once, because each text has a nonce of its own, and a MAC covers all of it.
    """
    key, nonce = current(), secrets.token_bytes(_NONCE_LENGTH)
    hidden = _crypt(key, context, nonce, text.encode())
    return base64.b64encode(nonce + _mac(key, context, nonce + hidden) + hidden).decode()


def unseal(context: str, sealed: str) -> Opened:
    """Returns the decrypted text. Raises Unsealable. A text that the other key sealed should be sealed again."""
    raw = base64.b64decode(sealed)
    nonce, mac = raw[:_NONCE_LENGTH], raw[_NONCE_LENGTH : _NONCE_LENGTH + _MAC_LENGTH]
    hidden = raw[_NONCE_LENGTH + _MAC_LENGTH :]
    for number, key in enumerate(ring()):
        if hmac.compare_digest(mac, _mac(key, context, nonce + hidden)):
            return Opened(_crypt(key, context, nonce, hidden).decode(), number == 0)
    raise Unsealable


def _mac(key: SigningKey, context: str, content: bytes) -> bytes:
    return key.mac(b"\0".join([b"sealed mac", context.encode(), content]))[:_MAC_LENGTH]


def _crypt(key: SigningKey, context: str, nonce: bytes, content: bytes) -> bytes:
    own = key.mac(b"\0".join([b"sealed stream", context.encode(), nonce]))
    stream = chain.from_iterable(hmac.digest(own, block.to_bytes(8), "sha256") for block in count())
    return bytes(left ^ right for left, right in zip(content, stream, strict=False))

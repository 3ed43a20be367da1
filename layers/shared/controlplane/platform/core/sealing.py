"""Encryption of short secrets that have to be read again, with keys derived from the signing secret.

A sealed text is bound to a context, such as the id of its item, so it can't be moved to another item. Its stream of
HMAC-SHA256 blocks is used once, because each text has a nonce of its own, and a MAC covers all of it. During a rotation
of the signing secret, texts that the other key sealed can be opened, and should be sealed again.
"""

import base64
import hmac
import secrets
from itertools import chain, count
from typing import NamedTuple

from controlplane.platform.core import keyring
from controlplane.platform.core.keyring import SigningKey

_NONCE_LENGTH, _MAC_LENGTH = 16, 16


class Unsealable(Exception):
    """No key of the ring sealed the text: the key was removed from the ring, or the text belongs to another context."""


class Opened(NamedTuple):
    """The text, and whether the current key sealed it."""

    text: str
    is_current: bool


def seal(context: str, text: str) -> str:
    """Returns the encrypted text."""
    key, nonce = keyring.current(), secrets.token_bytes(_NONCE_LENGTH)
    hidden = _crypt(key, context, nonce, text.encode())
    return base64.b64encode(nonce + _mac(key, context, nonce + hidden) + hidden).decode()


def unseal(context: str, sealed: str) -> Opened:
    """Returns the decrypted text. Raises Unsealable."""
    raw = base64.b64decode(sealed)
    nonce, mac = raw[:_NONCE_LENGTH], raw[_NONCE_LENGTH : _NONCE_LENGTH + _MAC_LENGTH]
    hidden = raw[_NONCE_LENGTH + _MAC_LENGTH :]
    for number, key in enumerate(keyring.ring()):
        if hmac.compare_digest(mac, _mac(key, context, nonce + hidden)):
            return Opened(_crypt(key, context, nonce, hidden).decode(), number == 0)
    raise Unsealable


def _mac(key: SigningKey, context: str, content: bytes) -> bytes:
    return key.mac(b"\0".join([b"sealed mac", context.encode(), content]))[:_MAC_LENGTH]


def _crypt(key: SigningKey, context: str, nonce: bytes, content: bytes) -> bytes:
    own = key.mac(b"\0".join([b"sealed stream", context.encode(), nonce]))
    stream = chain.from_iterable(hmac.digest(own, block.to_bytes(8), "sha256") for block in count())
    return bytes(left ^ right for left, right in zip(content, stream, strict=False))

"""The signing secret as a ring of one or two keys: the current key signs, and every key of the ring verifies.

During a rotation, two versions of a function run at the same time: one signs with the old key and one with the new key.
Both have both keys, so each accepts what the other issued. Values that are stored under a keyed digest must therefore
be looked up under every key of the ring. docs/decisions/0038-the-signing-secret-is-a-ring-of-two-keys.md has the steps.
"""

import hmac

from controlplane.platform.core.settings import settings


class NoSigningSecret(Exception):
    """The function uses the signing secret without having it. Add SIGNING_SECRET to its variables in template.yaml."""


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

"""Proof Key for Code Exchange (RFC 7636)."""

import base64
import hashlib
import secrets


def create_verifier() -> str:
    """Returns a new code verifier of 64 characters."""
    return secrets.token_urlsafe(48)


def challenge_of(verifier: str) -> str:
    """Returns the S256 code challenge of a code verifier."""
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")

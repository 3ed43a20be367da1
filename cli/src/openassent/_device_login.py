"""A device that waits for a person's approval, and its Proof Key for Code Exchange (RFC 7636)."""

import base64
import hashlib
import secrets
from dataclasses import dataclass, field

from openassent.models import DeviceCode


@dataclass(frozen=True)
class DeviceLogin:
    """A started login. Show `code.verification_uri` and `code.user_code` to the person.

    code: what the service returned. `code.verification_uri_complete` contains the user code.
    client_id: the client that started it.
    code_verifier: proves that the device that redeems the code is the one that started.
    """

    code: DeviceCode
    client_id: str
    code_verifier: str = field(repr=False)


def create_verifier() -> str:
    """Returns a new code verifier of 64 characters."""
    return secrets.token_urlsafe(48)


def challenge_of(verifier: str) -> str:
    """Returns the S256 code challenge of a code verifier."""
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")

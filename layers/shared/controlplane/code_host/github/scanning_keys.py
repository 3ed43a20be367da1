"""GitHub's public keys for reports of its secret scanning partner program, and the signatures made with them.

https://docs.github.com/code-security/secret-scanning/secret-scanning-partnership-program
"""

import base64
import binascii

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from controlplane.code_host.github.errors import CodeHostError, HostUnavailable
from controlplane.code_host.github.transport import Deadline, Request, RetryPolicy, Transport
from controlplane.platform.core import clock
from controlplane.platform.core.observability import logger

_OPERATION = "/meta/public_keys/secret_scanning"
_KEPT_SECONDS = 3600
# An unknown identifier may be that of a new key. Anyone can send one, so GitHub is asked once in this time, also if it
# doesn't respond.
_ASKED_AGAIN_SECONDS = 60
# A part of the time that a request has for all of its calls.
_POLICY = RetryPolicy(connect_timeout_seconds=1, read_timeout_seconds=2, total_timeout_seconds=3, max_attempts=2)


class ScanningKeys:
    """The public keys, kept in this process for an hour. If GitHub can't be reached, they are kept for longer."""

    def __init__(self, api_url: str) -> None:
        self._transport = Transport(api_url, _POLICY)
        self._keys: dict[str, EllipticCurvePublicKey] = {}
        self._asked_at: float | None = None

    def verify(self, identifier: str, signature: str, body: bytes) -> bool:
        """Returns whether the signature (Base64) of the body was made with the key. Raises HostUnavailable."""
        try:
            given = base64.b64decode(signature, validate=True)
        except (binascii.Error, ValueError):
            return False
        key = self._find(identifier)
        if key is None:
            return False
        try:
            key.verify(given, body, ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True

    def _find(self, identifier: str) -> EllipticCurvePublicKey | None:
        now = clock.now()
        kept_seconds = _KEPT_SECONDS if identifier in self._keys else _ASKED_AGAIN_SECONDS
        if self._asked_at is None or now - self._asked_at >= kept_seconds:
            self._asked_at = now
            try:
                self._keys = self._read()
            except CodeHostError as failure:
                logger.warning("secret scanning keys not read", extra=failure.context)
        if not self._keys:
            raise HostUnavailable(operation=_OPERATION)
        return self._keys.get(identifier)

    def _read(self) -> dict[str, EllipticCurvePublicKey]:
        request = Request("GET", _OPERATION, self._transport.url(_OPERATION), "")
        response = self._transport.send_with_retries(request, Deadline(_POLICY.total_timeout_seconds))
        return response.read(
            lambda content: {
                str(it["key_identifier"]): key for it in content["public_keys"] if (key := _load(it["key"])) is not None
            }
        )


def _load(pem: str) -> EllipticCurvePublicKey | None:
    """Returns the key, or None if it is for another algorithm. Raises ValueError if it isn't a key."""
    try:
        key = load_pem_public_key(pem.encode())
    except UnsupportedAlgorithm:
        return None
    return key if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1) else None

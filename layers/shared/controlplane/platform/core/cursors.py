"""Opaque cursors that contain only a position and are bound by a MAC to the list that issued them.

The MAC covers operation, organization, and filters, so a cursor that is modified or used for another list is rejected.
The cursor never contains the partition, which is derived from the caller's access in every request.
"""

import base64
import hmac

from controlplane.platform.core import keyring
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.keyring import SigningKey

_MAC_LENGTH = 16


def _mac(key: SigningKey, binding: tuple[str, ...], position: bytes) -> bytes:
    return key.mac(b"\0".join([b"cursor", *(part.encode() for part in binding), position]))[:_MAC_LENGTH]


def seal(binding: tuple[str, ...], position: str) -> str:
    """Returns a cursor for `position` (a sort key) that is valid only for the same binding."""
    raw = position.encode()
    return base64.urlsafe_b64encode(_mac(keyring.current(), binding, raw) + raw).decode().rstrip("=")


def open_sealed(binding: tuple[str, ...], cursor: str) -> str:
    """Returns the position. Raises InvalidPayload if this list didn't issue the cursor."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        raw = b""
    mac, position = raw[:_MAC_LENGTH], raw[_MAC_LENGTH:]
    # Comparing with the re-encoded text rejects unused bits, and characters that decoding ignores: each cursor has only
    # one spelling.
    canonical = base64.urlsafe_b64encode(raw).decode().rstrip("=") == cursor
    issued = any(hmac.compare_digest(mac, _mac(key, binding, position)) for key in keyring.ring())
    if not canonical or not issued:
        raise InvalidPayload.at(
            ["cursor"],
            "This list didn't issue this cursor with these filters. Begin again without a cursor.",
            "invalid_cursor",
        )
    return position.decode()

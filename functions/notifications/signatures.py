"""Signatures of deliveries, by the specification Standard Webhooks 1.0 (symmetric, version `v1`).

What is signed is `<id>.<timestamp>.<body>`. The secret's bytes are what follows `whsec_`, decoded as base64.
"""

import base64
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"


def sign(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    """Returns one signature, with its version."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{event_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def headers(event_id: str, timestamp: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """Returns the headers of a delivery, with a signature for each secret that is valid."""
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(secret, event_id, timestamp, body) for secret in secrets),
    }

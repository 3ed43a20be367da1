"""Verifies what the service sends to webhook endpoints, as Standard Webhooks defines it."""

import base64
import hmac
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from openassent.errors import AssentError

_PREFIX = "whsec_"


class InvalidSignature(AssentError):
    """The request isn't authentic, or too old. Answer it with 400, and don't use anything of it."""


class InvalidBody(AssentError):
    """The request is authentic, and its body isn't an event: the endpoint has another format than `standard`."""


@dataclass(frozen=True)
class Event:
    """An event.

    id: the same in every delivery of the event: ignore an event whose ID you have seen.
    type: such as `scan.completed`. Expect types that you don't know.
    timestamp: when it happened. Events can arrive in any order.
    data: what happened, with the `organization`, as the documentation of webhooks lists it.
    """

    id: str
    type: str
    timestamp: datetime
    data: dict[str, Any]


class _Body(BaseModel):
    type: str
    timestamp: datetime
    data: dict[str, Any]


def verify(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Sequence[str],
    *,
    tolerance_seconds: float = 300,
    now: float | None = None,
) -> Event:
    """Returns the event of a request to a webhook endpoint.

    body: exactly as it was received.
    headers: of the request, in any case.
    secrets: the endpoint's secret, or several while it is being changed.
    tolerance_seconds: how far the request's time may differ from this machine's.
    now: the time in seconds since 1970, for tests.

    Raises InvalidSignature, InvalidBody, and ValueError for an invalid secret.
    """
    keys = [_key_of(it) for it in ([secrets] if isinstance(secrets, str) else secrets)]
    sent = {name.lower(): value for name, value in headers.items()}
    event_id, timestamp = sent.get("webhook-id", ""), sent.get("webhook-timestamp", "")
    if not event_id or not (timestamp.isascii() and timestamp.isdigit()):
        raise InvalidSignature("The request has no webhook-id or no valid webhook-timestamp.")
    signed = f"{event_id}.{timestamp}.".encode() + body
    expected = [base64.b64encode(hmac.digest(key, signed, "sha256")) for key in keys]
    # Compares all of them, so that the time doesn't tell which one is right.
    matches = [hmac.compare_digest(one, other) for one in _signatures(sent) for other in expected]
    if not any(matches):
        raise InvalidSignature("No signature of the request is right.")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance_seconds:
        raise InvalidSignature("The request is too old, or a clock is wrong.")
    try:
        content = _Body.model_validate_json(body)
    except ValidationError:
        raise InvalidBody("The body isn't an event.") from None
    return Event(event_id, content.type, content.timestamp, content.data)


def _signatures(headers: Mapping[str, str]) -> list[bytes]:
    signatures = (it.partition(",") for it in headers.get("webhook-signature", "").split())
    return [encoded.encode() for version, _, encoded in signatures if version == "v1"]


def _key_of(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.strip().removeprefix(_PREFIX), validate=True)
    except ValueError:  # not base64, or not even ASCII
        key = b""
    if not key:  # everyone can sign with an empty key
        raise ValueError("the secret of a webhook endpoint is whsec_ followed by a key")
    return key

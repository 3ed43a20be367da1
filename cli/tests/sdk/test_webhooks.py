"""webhooks.verify accepts authentic and recent requests, and nothing else."""

import base64
import hmac
import json
import time

import pytest

from openassent import AssentError, webhooks
from tests.support.each import each

SECRET = "whsec_" + base64.b64encode(b"k" * 27).decode()
OTHER = "whsec_" + base64.b64encode(b"o" * 27).decode()
NOW = 1_772_600_767
EVENT = {"type": "scan.completed", "timestamp": "2026-03-04T05:06:07.000Z", "data": {"scan": {"id": "scn_1"}}}
BODY = json.dumps(EVENT).encode()


def signature(secret: str, body: bytes = BODY, timestamp: int = NOW, event_id: str = "evt_1") -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"


def headers(signatures: str | None = None, timestamp: int | str = NOW) -> dict[str, str]:
    return {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(SECRET) if signatures is None else signatures,
    }


class TestAnAuthenticRequest:
    def test_is_an_event(self):
        event = webhooks.verify(BODY, headers(), SECRET, now=NOW)
        assert (event.id, event.type, event.data) == ("evt_1", "scan.completed", EVENT["data"])
        assert event.timestamp.isoformat() == "2026-03-04T05:06:07+00:00"

    def test_can_have_headers_in_any_case(self):
        sent = {name.title(): value for name, value in headers().items()}
        assert webhooks.verify(BODY, sent, SECRET, now=NOW).id == "evt_1"

    def test_can_have_several_signatures_and_the_receiver_several_secrets(self):
        both = f"{signature(OTHER)} {signature(SECRET)}"
        assert webhooks.verify(BODY, headers(both), SECRET, now=NOW)
        assert webhooks.verify(BODY, headers(signature(OTHER)), [SECRET, OTHER], now=NOW)
        assert webhooks.verify(BODY, headers(), f" {SECRET}\n", now=NOW)
        assert webhooks.verify(BODY, headers(f"v2,abc {signature(SECRET)}"), SECRET, now=NOW)

    def test_a_clock_can_be_five_minutes_off(self):
        for seconds in (-300, 300):
            assert webhooks.verify(BODY, headers(), SECRET, now=NOW + seconds).id == "evt_1"
        for seconds in (-301, 301):
            with pytest.raises(webhooks.InvalidSignature, match="old"):
                webhooks.verify(BODY, headers(), SECRET, now=NOW + seconds)
        now = int(time.time())
        assert webhooks.verify(BODY, headers(signature(SECRET, timestamp=now), now), SECRET)
        with pytest.raises(webhooks.InvalidSignature, match="old"):
            webhooks.verify(BODY, headers(), SECRET)


class TestAnotherRequest:
    @each(
        "signatures",
        ["", "v1", "v1,", "v1,é", f"v2,{signature(SECRET)[3:]}", signature(OTHER), signature(SECRET)[:-2]],
        ids=range(7),
    )
    def test_is_rejected_without_a_right_signature(self, signatures):
        with pytest.raises(webhooks.InvalidSignature):
            webhooks.verify(BODY, headers(signatures), SECRET, now=NOW)

    def test_is_rejected_when_anything_signed_was_changed(self):
        for body, changed in (
            (BODY + b" ", {}),
            (BODY, {"webhook-id": "evt_2"}),
            (BODY, {"webhook-timestamp": str(NOW + 1)}),
            (BODY, {"webhook-timestamp": "soon"}),
            (BODY, {"webhook-timestamp": "²"}),
            (BODY, {"webhook-id": ""}),
        ):
            with pytest.raises(webhooks.InvalidSignature):
                webhooks.verify(body, headers() | changed, SECRET, now=NOW)
        for name in headers():
            with pytest.raises(webhooks.InvalidSignature):
                webhooks.verify(BODY, {k: v for k, v in headers().items() if k != name}, SECRET, now=NOW)

        with pytest.raises(webhooks.InvalidSignature):
            webhooks.verify(BODY, headers(), [], now=NOW)

    def test_a_signed_body_in_another_format_is_rejected(self):
        body = b'{"text": "A scan has ended."}'
        with pytest.raises(webhooks.InvalidBody):
            webhooks.verify(body, headers(signature(SECRET, body)), SECRET, now=NOW)


def test_a_wrong_or_an_empty_secret_is_an_error_of_the_program():
    """Everyone can sign with an empty one: a setting that is missing would accept every request."""
    for wrong in ("whsec_not base64", "whsec_é", f"{SECRET}!"):
        with pytest.raises(ValueError, match="whsec_") as caught:
            webhooks.verify(BODY, headers(), wrong, now=NOW)
        assert not isinstance(caught.value, AssentError)
        assert wrong[6:] not in str(caught.value)

    for empty in ("", "whsec_", [SECRET, ""]):
        with pytest.raises(ValueError, match="whsec_"):
            webhooks.verify(BODY, headers(signature("")), empty, now=NOW)

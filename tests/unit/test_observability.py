"""Nothing that opens a door or names a person reaches a log."""

import io
import json
import logging

import pytest

from controlplane import tokens
from controlplane.observability import _ScrubbingFormatter, describe, scrub


@pytest.mark.parametrize(
    "secret",
    [
        "assent_0123456789abcdefghijABCDEFGHIJ012345",
        "assent_at_0123456789abcdefghijABCDEFGHIJ012345",
        "acme-consent_0123456789abcdefghijABCDEFGHIJ012345",
        "Bearer abcdefghijklmnop",
        "bearer   x.y.z",
        "ada.lovelace+tag@example.co.uk",
        "ÄDA@exämple.de",
    ],
)
def test_secrets_and_addresses_are_replaced_wherever_they_stand(secret: str):
    for text in (secret, f'{{"a":"{secret}"}}', f"before {secret}, after", f"key={secret}"):
        scrubbed = scrub(text)
        assert secret not in scrubbed
        assert secret.rpartition(" ")[2] not in scrubbed
        assert "[redacted]" in scrubbed


@pytest.mark.parametrize("text", ["key_0123456789abcdefgh", "org_0123456789abcdef", "GET /v1/projects", "10.1.2.3"])
def test_ids_and_words_stay(text: str):
    assert scrub(text) == text


def test_the_formatter_scrubs_every_field_of_a_line():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_ScrubbingFormatter())
    logger = logging.getLogger("scrub-test")
    logger.propagate = False
    logger.addHandler(handler)
    secret = tokens.mint("assent")
    logger.warning("token %s", secret, extra={"field": secret, "nested": {"mail": "ada@example.com"}})
    line = stream.getvalue()
    assert secret not in line
    assert "ada@example.com" not in line
    assert json.loads(line)["field"] == "[redacted]"


def test_an_exception_is_described_without_its_message():
    try:
        int("ada@example.com")
    except ValueError as error:
        described = describe(error)
    assert described["errorType"] == "ValueError"
    assert "ada" not in json.dumps(described)
    assert described["stack"][-1].startswith("test_observability.py:")

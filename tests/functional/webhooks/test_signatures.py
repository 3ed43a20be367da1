"""Deliveries are signed so that the documented code verifies them, with secrets that are sealed in the table."""

import json

import pytest

from controlplane.notify import webhooks
from controlplane.platform.core import clock, keyring
from controlplane.platform.core.settings import settings
from tests.support.endpoints import SECRET, URL, documented_verify, endpoint

SECOND = "another-signing-secret-of-enough-length"


@pytest.fixture
def verify():
    return documented_verify()


def test_the_documented_code_verifies_a_delivery_and_nothing_else(line, company, verify, now):
    webhook = endpoint(company)
    item_id = line.tell()
    ((url, body, headers),) = line.receiver.requests
    (delivery,) = line.deliveries(webhook)
    assert (url, verify(SECRET, headers, body, clock.now())) == (URL, delivery.event_id)
    for secret, wrong, seconds, reason in (
        (SECRET, body + b" ", 0, "signature"),
        (SECRET, body.replace(b"open", b"shut"), 0, "signature"),
        ("whsec_" + "Ab3y" * 9, body, 0, "signature"),
        (SECRET, body, 301, "old"),
    ):
        with pytest.raises(ValueError, match=reason):
            verify(secret, headers, wrong, clock.now() + seconds)
    event = json.loads(body)
    assert (event["type"], [it["id"] for it in event["data"]["findings"]]) == ("finding.opened", [item_id])
    assert (delivery.status, delivery.attempts, delivery.next_attempt_at) == ("succeeded", 1, None)
    assert [(it.status, it.error) for it in delivery.log] == [(200, None)]
    assert delivery.expires_at == now.seconds + 30 * 86_400


def test_a_rotated_secret_signs_together_with_the_old_one_for_a_day(line, company, verify, now):
    new = "whsec_" + "Zz9x" * 9
    webhooks.rotate_secret(endpoint(company), new, company.owner.user_id, {})
    for elapsed, old_is_valid in ((0, True), (86_399, True), (1, False)):
        now.advance(elapsed)
        line.tell()
        _, body, headers = line.receiver.requests[-1]
        verify(new, headers, body, clock.now())
        if old_is_valid:
            verify(SECRET, headers, body, clock.now())
        else:
            with pytest.raises(ValueError, match="signature"):
                verify(SECRET, headers, body, clock.now())


def test_secrets_survive_a_rotation_of_the_signing_secret(line, company, sign_with):
    webhook, first = endpoint(company), settings.signing_secret.current
    webhooks.rotate_secret(webhook, SECRET, company.owner.user_id, {})
    webhook = line.read(webhook)  # with two secrets
    for previous in (first, None):
        sign_with(SECOND, previous)
        line.tell()
    assert [it.status for it in line.deliveries(webhook)] == ["succeeded", "succeeded"]
    assert line.read(webhook).secret != webhook.secret


def test_both_secrets_are_sealed_with_the_current_signing_secret_unless_one_was_replaced(line, company, sign_with):
    outdated = endpoint(company)
    sign_with(SECOND, settings.signing_secret.current)
    webhooks.rotate_secret(outdated, SECRET, company.owner.user_id, {})
    webhook = line.read(outdated)
    webhooks.seal_again(outdated)
    assert line.read(outdated) == webhook
    webhooks.seal_again(webhook)
    sign_with(SECOND)
    texts = [keyring.unseal(webhook.webhook_id, it).text for it in line.read(webhook).sealed_secrets]
    assert texts == [SECRET, SECRET]


def test_a_secret_that_no_key_opens_fails_visibly_until_it_is_rotated(line, company, sign_with):
    webhook = endpoint(company)
    sign_with(SECOND)
    line.tell()
    assert (line.deliveries(webhook)[0].log[-1].error, line.receiver.requests) == ("secret", [])

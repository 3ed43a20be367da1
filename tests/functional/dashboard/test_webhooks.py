"""The pages of webhooks: create an endpoint, see its deliveries, replay them, change it, and delete it."""

import re

import pytest

from controlplane.notify import webhooks
from controlplane.notify.webhooks import WebhookItem
from controlplane.platform.queues.events import WEBHOOK_EVENTS
from tests.functional.dashboard.conftest import HOSTILE, pages_in
from tests.support.browser import text_of
from tests.support.endpoints import URL, Line, Receiver, endpoint
from tests.support.reply import Reply
from tests.support.world import Company

FILLED = {"Name": "Alerts", "URL": URL, **dict.fromkeys(WEBHOOK_EVENTS, False), "scan.completed": True}


@pytest.fixture
def line(world, company, sqs, monkeypatch):
    return Line(sqs, world, company, Receiver().install(monkeypatch))


path = pages_in("webhooks")


def stored(company: Company) -> list[WebhookItem]:
    return webhooks.list_webhooks(company.organization_id)


def secret_in(reply: Reply) -> str:
    assert "This is the only time that the secret is shown." in text_of(reply)
    (secret,) = re.findall(r'<code id="secret">(whsec_\w+)</code>', reply.text)
    return str(secret)


def test_an_endpoint_is_created_and_its_secret_is_shown_once(visitor, company):
    page, secrets = visitor.get(path(company)), set()
    for _ in range(2):
        secrets.add(secret_in(visitor.press("Create endpoint", fill=FILLED, on=page)))
    (webhook,) = stored(company)
    assert (webhook.name, webhook.url, webhook.events) == ("Alerts", URL, ("scan.completed",))
    (secret,) = secrets
    for below in ("", f"/{webhook.webhook_id}"):
        assert secret not in visitor.get(path(company, below)).text


def test_an_unusable_form_creates_nothing_and_keeps_what_was_entered(visitor, company):
    for changes, message in (
        ({"Name": " "}, "Enter a name"),
        ({"URL": "http://hooks.example.com"}, "must start with https"),
        ({"URL": "https://169.254.169.254/"}, "public host name"),
        ({"scan.completed": False}, "Select at least one event."),
        ({"Name": HOSTILE, "URL": HOSTILE}, "The URL"),
    ):
        visitor.get(path(company))
        reply = visitor.press("Create endpoint", fill={**FILLED, **changes})
        assert (reply.status, message in text_of(reply), "<script>alert" in reply.text) == (400, True, False), changes
        assert 'name="scan.completed" value="yes" checked' in reply.text or "scan.completed" in changes
    visitor.get(path(company))
    sent = {**visitor.sends("Create endpoint"), "name": "Alerts", "url": URL, "format": HOSTILE}
    assert "Choose a format." in text_of(visitor.forge(path(company), sent))
    assert stored(company) == []


def test_deliveries_are_shown_and_replayed_and_members_see_who_can(visitor, world, company, line):
    webhook = endpoint(company, name=HOSTILE)
    line.receiver.answer = 500
    line.happen()
    line.work()
    own = path(company, f"/{webhook.webhook_id}")
    shown = visitor.get(own)
    for words in ("Pending", "500", "Deliveries have failed since"):
        assert words in text_of(shown)
    assert "<script>alert" not in shown.text
    delivery = f"{own}/deliveries/{line.deliveries(webhook)[0].event_id}"
    assert "finding.opened" in text_of(visitor.get(delivery))
    line.receiver.answer = 200
    reply = visitor.press("Replay")
    assert reply.headers["location"].endswith(f"{delivery}?done=replayed")
    line.work()
    assert "Succeeded" in text_of(visitor.get(f"{delivery}?done=replayed"))
    assert len(line.receiver.requests) == 2
    visitor.signed_in(world.member(company).user_id)
    shown = visitor.get(path(company))
    assert "Admins and owners can see and change webhooks." in text_of(shown)
    assert "hooks.example.com" not in shown.text
    assert visitor.get(own).status == 403


def test_an_endpoint_is_changed_disabled_enabled_rotated_and_deleted(visitor, company, line):
    webhook = endpoint(company)
    own = path(company, f"/{webhook.webhook_id}")
    visitor.get(own)
    assert visitor.press("Save", fill={"Name": "Slack", "Format": "Slack incoming webhook"}).status == 303
    assert (stored(company)[0].name, stored(company)[0].format) == ("Slack", "slack")
    visitor.get(own)
    assert visitor.press("Save", fill={"URL": "ftp://hooks.example.com"}).status == 400
    line.happen()
    line.work()
    delivery = f"{own}/deliveries/{line.deliveries(webhook)[0].event_id}"
    for label, status in (("Disable this endpoint", "disabled"), ("Enable this endpoint", "enabled")):
        visitor.get(own)
        assert visitor.press(label).status == 303
        assert stored(company)[0].status == status
        shown = text_of(visitor.get(delivery))
        assert ("Enable it to replay" in shown, visitor.offers("Replay") == 0) == (status == "disabled",) * 2
        assert f"The endpoint is {status}." in text_of(visitor.get(f"{own}?done={status}"))
    assert secret_in(visitor.press("Rotate the secret")) != webhook.secret
    assert stored(company)[0].previous_secret == webhook.secret
    visitor.get(own)
    assert visitor.press("Delete this endpoint").status == 303
    assert (stored(company), visitor.get(own).status) == ([], 404)

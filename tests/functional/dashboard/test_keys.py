"""The pages of API keys and of webhooks: list, create, change, roll, and revoke."""

import re

import pytest

from controlplane.api_keys import store as api_keys
from controlplane.api_keys.items import ApiKeyItem, KeyDraft, Restrictions
from controlplane.billing import store as billing
from controlplane.notify import webhooks
from controlplane.notify.webhooks import WebhookItem
from controlplane.platform.queues.events import WEBHOOK_EVENTS
from controlplane.projects import store as projects
from tests.functional.dashboard.conftest import pages_in
from tests.support.browser import Browser, text_of
from tests.support.endpoints import URL, Line, Receiver, endpoint
from tests.support.reply import Reply
from tests.support.world import Company, table_dump

NAMED = {"Name of a new key": "Deploys"}


path = pages_in("keys")


def stored(company: Company) -> list[ApiKeyItem]:
    return api_keys.list_keys(company.organization_id, 50, None).items


def secret_in(browser):
    assert "This is the only time that the secret is shown." in text_of(browser.last)
    (secret,) = re.findall(r'<code id="secret">(assent_\w+)</code>', browser.last.text)
    return secret


def create(browser: Browser, company: Company) -> str:
    browser.get(path(company))
    assert browser.press("Create key", fill=NAMED).status == 200
    return secret_in(browser)


def created(browser: Browser, company: Company) -> tuple[str, ApiKeyItem]:
    """Creates a key and opens its page. Returns its secret, and what is stored."""
    secret = create(browser, company)
    (key,) = stored(company)
    browser.get(path(company, f"/{key.key_id}"))
    return secret, key


class TestCreate:
    def test_the_secret_works_and_is_shown_only_in_the_response(self, visitor, company):
        secret, key = created(visitor, company)
        assert visitor.api.get("/v1/projects", secret).status == 200
        assert (key.name, key.created_by, key.created_from) == ("Deploys", company.owner.user_id, "dashboard")
        listed, shown = visitor.get(path(company)), visitor.get(path(company, f"/{key.key_id}"))
        assert "In the last hour" in text_of(listed)
        assert '<th scope="row">Mar 4</th><td>1</td><td>0</td>' in shown.text
        assert not any(secret in it for it in (listed.text, shown.text, str(table_dump())))

    def test_a_form_that_is_sent_again_shows_the_same_secret_and_creates_nothing(self, visitor, company):
        page = visitor.get(path(company))
        secrets = set()
        for _ in range(2):
            visitor.press("Create key", fill=NAMED, on=page)
            secrets.add(secret_in(visitor))
        assert len(secrets) == 1
        reply = visitor.press("Create key", fill={"Name of a new key": "Another"}, on=page)
        assert (reply.status, len(stored(company))) == (409, 1)
        assert "This form was already used." in text_of(reply)

    def test_a_key_beyond_the_limit_or_without_api_access_is_not_offered(self, visitor, company, monkeypatch):
        first, second, third = (visitor.get(path(company)) for _ in range(3))
        billing.change_plan(company.organization_id, "free")
        reply = visitor.press("Create key", fill=NAMED, on=first)
        words = "The Free plan has no API access. Keys need the Starter plan or higher. To change the plan"
        assert (reply.status, words in text_of(reply)) == (402, True)
        assert not visitor.offers("Create key")
        billing.change_plan(company.organization_id, "pro")
        for module in ("controlplane.api_keys.store", "controlplane.platform.core.plans", "dashboard.api_keys.pages"):
            monkeypatch.setattr(f"{module}.API_KEYS_PER_ORGANIZATION", 1)
        assert visitor.press("Create key", fill=NAMED, on=second).status == 200
        reply = visitor.press("Create key", fill=NAMED, on=third)
        assert (reply.status, "the most that an organization can have" in text_of(reply)) == (409, True)
        assert not visitor.offers("Create key")

    def test_a_key_is_created_with_limits_and_shows_them(self, visitor, company, world, now):
        project = world.connected_repository(company).links[0].project_id
        visitor.get(path(company))
        limits: dict[str, str | bool] = {
            "Description": "For <releases>.",
            "inbox.read": True,
            "projects.read": True,
            projects.get_project(project).name: True,
            "Addresses that may use the key": "198.51.100.0/24\n2001:db8::1",
            "Expires on": "2026-04-01",
        }
        assert visitor.press("Create key", fill={**NAMED, **limits}).status == 200
        assert visitor.api.get("/v1/billing", secret_in(visitor)).code == "INSUFFICIENT_SCOPE"
        (key,) = stored(company)
        assert key.restrictions.project_ids == (project,)
        assert key.restrictions.allowed_ips == ("198.51.100.0/24", "2001:db8::1/128")
        assert key.restrictions.expires_at_text == "2026-04-01T00:00:00.000Z"
        listed = text_of(visitor.get(path(company)))
        assert "2 scopes, 1 project, 2 networks" in listed
        assert "For <releases>." in listed
        shown = text_of(visitor.get(path(company, f"/{key.key_id}")))
        for text in ("inbox.read, projects.read", "198.51.100.0/24, 2001:db8::1/128", "For <releases>.", "April 1"):
            assert text in shown
        assert project not in shown  # it has a name


class TestRollAndRevoke:
    def test_a_rolled_key_is_replaced_once(self, visitor, company):
        old_secret, old = created(visitor, company)
        page = visitor.get(path(company, f"/{old.key_id}"))
        for _ in range(2):
            assert visitor.press("Roll this key", on=page).status == 200
            assert visitor.api.get("/v1/projects", secret_in(visitor)).status == 200
        assert visitor.api.get("/v1/projects", old_secret).status == 401
        assert [it.name for it in stored(company)] == [old.name]
        assert visitor.get(path(company, f"/{old.key_id}")).status == 404

    def test_an_old_secret_works_in_its_grace_period_and_is_revoked_alone(self, visitor, company, now):
        old, key = created(visitor, company)
        reply = visitor.press("Roll this key", fill={"How long the current secret still works": "1 day"})
        assert "the old secret stops working in 1 day" in text_of(reply)
        (rolled,) = stored(company)
        own = path(company, f"/{rolled.key_id}")
        shown = text_of(visitor.get(own))
        assert [words in shown for words in ("its old secret still works", "Not since the roll")] == [True, True]
        now.advance(60)
        assert visitor.api.get("/v1/me", old).status == 200
        assert f"Also {key.start}" in text_of(visitor.get(path(company)))
        assert "Last used March 4, 2026, 05:07 UTC" in text_of(visitor.get(own))
        shown = text_of(visitor.follow(visitor.press("Revoke the old secret")))
        assert ("The old secret has stopped working." in shown, "its old secret still works" in shown) == (True, False)
        assert visitor.api.get("/v1/me", old).status == 401
        assert [it.key_id for it in stored(company)] == [rolled.key_id]

    def test_a_revoked_key_stops_working_and_an_expired_one_cannot_be_rolled(self, visitor, company):
        secret, key = created(visitor, company)
        page = visitor.get(path(company, f"/{key.key_id}"))
        assert "The key is revoked." in text_of(visitor.follow(visitor.press("Revoke this key")))
        assert visitor.api.get("/v1/projects", secret).status == 401
        assert visitor.press("Revoke this key", on=page).status == 404
        draft = KeyDraft("Deploys", None, Restrictions(expires_at=1_772_600_766))
        key = api_keys.create_key(company.organization_id, draft, company.owner.user_id, "test").item
        shown = text_of(visitor.get(path(company, f"/{key.key_id}")))
        assert ("Expired" in shown, "it can't be rolled" in shown) == (True, True)


def test_a_member_sees_keys_without_forms(browser, company, world):
    world.key(company)
    browser.signed_in(world.member(company).user_id)
    for shown in ("", f"/{stored(company)[0].key_id}"):
        assert "Admins and owners can" in text_of(browser.get(path(company, shown)))
        assert browser.buttons() == {"Sign out"}


FILLED = {"Name": "Alerts", "URL": URL, **dict.fromkeys(WEBHOOK_EVENTS, False), "scan.completed": True}


@pytest.fixture
def line(world, company, sqs, monkeypatch):
    return Line(sqs, world, company, Receiver().install(monkeypatch))


webhook_path = pages_in("webhooks")


def stored_webhooks(company: Company) -> list[WebhookItem]:
    return webhooks.list_webhooks(company.organization_id)


def webhook_secret_in(reply: Reply) -> str:
    assert "This is the only time that the secret is shown." in text_of(reply)
    (secret,) = re.findall(r'<code id="secret">(whsec_\w+)</code>', reply.text)
    return str(secret)


def test_an_endpoint_is_created_and_its_secret_is_shown_once(visitor, company):
    page, secrets = visitor.get(webhook_path(company)), set()
    for _ in range(2):
        secrets.add(webhook_secret_in(visitor.press("Create endpoint", fill=FILLED, on=page)))
    (webhook,) = stored_webhooks(company)
    assert (webhook.name, webhook.url, webhook.events) == ("Alerts", URL, ("scan.completed",))
    (secret,) = secrets
    for below in ("", f"/{webhook.webhook_id}"):
        assert secret not in visitor.get(webhook_path(company, below)).text


def test_deliveries_are_shown_and_replayed_and_members_see_who_can(visitor, world, company, line):
    webhook = endpoint(company)
    line.receiver.answer = 500
    line.happen()
    line.work()
    own = webhook_path(company, f"/{webhook.webhook_id}")
    shown = visitor.get(own)
    for words in ("Pending", "500", "Deliveries have failed since"):
        assert words in text_of(shown)
    delivery = f"{own}/deliveries/{line.deliveries(webhook)[0].event_id}"
    assert "finding.opened" in text_of(visitor.get(delivery))
    line.receiver.answer = 200
    reply = visitor.press("Replay")
    assert reply.headers["location"].endswith(f"{delivery}?done=replayed")
    line.work()
    assert "Succeeded" in text_of(visitor.get(f"{delivery}?done=replayed"))
    assert len(line.receiver.requests) == 2
    visitor.signed_in(world.member(company).user_id)
    shown = visitor.get(webhook_path(company))
    assert "Admins and owners can see and change webhooks." in text_of(shown)
    assert "hooks.example.com" not in shown.text
    assert visitor.get(own).status == 403


def test_an_endpoint_is_changed_disabled_enabled_rotated_and_deleted(visitor, company, line):
    webhook = endpoint(company)
    own = webhook_path(company, f"/{webhook.webhook_id}")
    visitor.get(own)
    assert visitor.press("Save", fill={"Name": "Slack", "Format": "Slack incoming webhook"}).status == 303
    assert (stored_webhooks(company)[0].name, stored_webhooks(company)[0].format) == ("Slack", "slack")
    line.happen()
    line.work()
    delivery = f"{own}/deliveries/{line.deliveries(webhook)[0].event_id}"
    for label, status in (("Disable this endpoint", "disabled"), ("Enable this endpoint", "enabled")):
        visitor.get(own)
        assert visitor.press(label).status == 303
        assert stored_webhooks(company)[0].status == status
        shown = text_of(visitor.get(delivery))
        assert ("Enable it to replay" in shown, visitor.offers("Replay") == 0) == (status == "disabled",) * 2
        assert f"The endpoint is {status}." in text_of(visitor.get(f"{own}?done={status}"))
    assert webhook_secret_in(visitor.press("Rotate the secret")) != webhook.secret
    assert stored_webhooks(company)[0].previous_secret == webhook.secret
    visitor.get(own)
    assert visitor.press("Delete this endpoint").status == 303
    assert (stored_webhooks(company), visitor.get(own).status) == ([], 404)

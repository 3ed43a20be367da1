"""The SDK drives the real apps: the resources, errors, retries, and webhooks."""

from collections.abc import Callable

import pytest

from controlplane.people import device_approvals
from controlplane.platform.core import clock
from openassent import Assent, Conflict, InvalidRequest, NotFound, Unauthorized, webhooks
from tests.support.endpoints import SECRET, Line, Receiver, endpoint
from tests.support.world import Company, World

Connect = Callable[..., Assent]


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def client(connect: Connect, company: Company) -> Assent:
    return connect(company.owner.token)


def test_projects_are_created_listed_changed_and_deleted(client):
    region = client.regions.list().page().items[0].id
    made = client.projects.create(name="Shop", region=region, websites=["shop.example.com", "localhost:3000"])
    assert [it.origin for it in made.websites] == ["shop.example.com", "localhost:3000"]
    client.projects.update(made.id, description="Since 1906")
    changed = client.projects.update(made.id, name="Bakery")
    assert (changed.slug, changed.description) == ("bakery", "Since 1906")
    assert client.projects.update(made.id, description=None).description is None
    found = client.projects.get(made.id)
    assert (found.name, found.region, found.consent is not None) == ("Bakery", region, True)
    assert client.projects.consent(made.id).trusted_origins == ["shop.example.com", "localhost:3000"]
    assert client.projects.delete_website(made.id, found.websites[1].id).deleted_audits == 0
    assert [it.id for it in client.projects.list()] == [made.id]
    assert client.projects.delete(made.id, dry_run=True).deleted_websites == 1
    assert client.projects.delete(made.id).deleted
    with pytest.raises(NotFound):
        client.projects.get(made.id)


class TestALostResponse:
    def test_a_creation_whose_response_is_lost_creates_once_and_returns_the_secret(self, client, gateway, connect):
        gateway.losing = 2
        made = client.api_keys.create(name="Deploys")
        assert connect(made.key).me.get().principal.key_id == made.key_id
        assert [it.key_id for it in client.api_keys.list()] == [made.key_id]

    def test_a_deletion_whose_response_is_lost_deletes_the_resource(self, client, gateway):
        made = client.projects.create(name="Shop", region="eu-central")
        gateway.losing = 1
        with pytest.raises(NotFound):
            client.projects.delete(made.id)
        assert list(client.projects.list()) == []


class TestErrors:
    def test_say_what_is_wrong_and_what_to_do(self, client, connect):
        client.organizations.create(name="Acme", slug="taken-slug")
        with pytest.raises(Conflict) as conflict:
            client.organizations.create(name="Acme", slug="taken-slug")
        assert len(conflict.value.details["suggestions"]) == 3
        with pytest.raises(InvalidRequest) as invalid:
            client.projects.create(name="", region="moon")
        assert invalid.value.problems[0].path == ["name"]
        assert invalid.value.hint
        assert invalid.value.docs_url
        with pytest.raises(Unauthorized) as unauthorized:
            connect("assent_wrong").me.get()
        assert (unauthorized.value.code, unauthorized.value.status) == ("UNAUTHORIZED", 401)


class TestALogin:
    def test_survives_a_lost_response_to_a_refresh(self, connect, world, gateway):
        anonymous = connect()
        login = anonymous.device.start(scopes=["projects.read"])
        device_approvals.approve(login.code.user_code, world.person().user_id, ["projects.read"])
        token = anonymous.device.redeem(login)
        gateway.losing = 1
        assert connect(anonymous.device.refresh(token.refresh_token).access_token).me.get().scopes == ["projects.read"]


class TestAWebhook:
    def test_is_verified(self, client, company, world, sqs, monkeypatch):
        line = Line(sqs, world, company, Receiver().install(monkeypatch))
        webhook = endpoint(company)
        item_id = line.happen()
        line.work()
        ((_, body, headers),) = line.receiver.requests
        event = webhooks.verify(body, headers, SECRET, now=clock.now())
        assert event.type == "finding.opened"
        assert [it["id"] for it in event.data["findings"]] == [item_id]
        assert [it.event_id for it in client.webhook_endpoints.deliveries(webhook.webhook_id)] == [event.id]
        with pytest.raises(webhooks.InvalidSignature):
            webhooks.verify(body + b" ", headers, SECRET, now=clock.now())
        rotated = client.webhook_endpoints.rotate_secret(webhook.webhook_id)
        assert client.webhook_endpoints.replay(webhook.webhook_id, event.id).status == "pending"
        line.work()
        _, body, headers = line.receiver.requests[-1]
        for secret in (SECRET, rotated.secret):
            assert webhooks.verify(body, headers, secret, now=clock.now()).id == event.id

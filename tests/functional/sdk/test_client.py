"""The SDK drives the real apps: the resources, errors, retries, and webhooks."""

from collections.abc import Callable

import pytest

from controlplane.people import device_approvals
from controlplane.platform.core import clock
from openassent import Assent, Conflict, InvalidRequest, NotFound, Unauthorized, errors, webhooks
from openassent.models import InboxItemChange
from tests.functional.conftest import FakeClock
from tests.functional.sdk.conftest import Gateway
from tests.support.endpoints import SECRET, Line, Receiver, endpoint
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World

Connect = Callable[..., Assent]


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def client(connect: Connect, company: Company) -> Assent:
    return connect(company.owner.token)


def test_projects_are_created_listed_changed_and_deleted(client: Assent):
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
    def test_a_creation_whose_response_is_lost_creates_once(self, client: Assent, gateway: Gateway):
        gateway.losing = 2
        made = client.projects.create(name="Shop", region="eu-central")
        assert [it.id for it in client.projects.list()] == [made.id]

    def test_a_creation_whose_response_is_lost_returns_the_secret(
        self, client: Assent, gateway: Gateway, connect: Connect
    ):
        gateway.losing = 1
        made = client.api_keys.create(name="Deploys")
        assert connect(made.key).me.get().principal.key_id == made.key_id
        assert [it.key_id for it in client.api_keys.list()] == [made.key_id]

    def test_a_deletion_whose_response_is_lost_deletes_the_resource(self, client: Assent, gateway: Gateway):
        made = client.projects.create(name="Shop", region="eu-central")
        gateway.losing = 1
        with pytest.raises(NotFound):
            client.projects.delete(made.id)
        assert list(client.projects.list()) == []


class TestErrors:
    def test_say_what_is_wrong_and_what_to_do(self, client: Assent, connect: Connect):
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

    def test_can_be_explained(self, client: Assent, company: Company):
        with pytest.raises(InvalidRequest) as invalid:
            client.projects.create(name="Shop", region="moon")
        assert invalid.value.request_id is not None
        explained = client.requests.get(invalid.value.request_id)
        assert (explained.decision, explained.refusal and explained.refusal.code) == ("refused", "INVALID_REGION")


def test_several_findings_are_changed_at_once(client: Assent, world: World, company: Company):
    item = world.finding(company)
    (result,) = client.inbox.update_many([InboxItemChange(id=item.item_id, status="dismissed", version=item.version)])
    assert result.item is not None
    assert (result.status_code, result.item.status) == (200, "dismissed")


class TestALogin:
    def test_signs_in_refreshes_and_signs_out(
        self, connect: Connect, world: World, now: FakeClock, monkeypatch: pytest.MonkeyPatch
    ):
        person = world.person()
        anonymous = connect()
        metadata = anonymous.device.metadata()
        login = anonymous.device.start(scopes=["organizations.read"], device_name="build server", metadata=metadata)
        with pytest.raises(errors.AuthorizationPending):
            anonymous.device.redeem(login)
        waited: list[float] = []

        def sleep(seconds: float) -> None:
            """The person approves while the device waits for the second time."""
            waited.append(seconds)
            now.advance(seconds + 1)
            if len(waited) == 2:
                device_approvals.approve(login.code.user_code, person.user_id, ["organizations.read"])

        monkeypatch.setattr("openassent._sync.device.sleep", sleep)
        token = anonymous.device.poll(login, metadata=metadata)
        assert waited == [5.0, 5.0]
        assert connect(token.access_token).me.get().scopes == ["organizations.read"]
        renewed = anonymous.device.refresh(token.refresh_token, metadata=metadata)
        assert renewed.refresh_token != token.refresh_token
        assert anonymous.device.revoke(renewed.refresh_token, metadata=metadata).revoked
        with pytest.raises(Unauthorized):
            connect(renewed.access_token).me.get()
        with pytest.raises(Unauthorized):
            anonymous.device.refresh(renewed.refresh_token)

    def test_survives_a_lost_response_to_a_refresh(self, connect: Connect, world: World, gateway: Gateway):
        anonymous = connect()
        login = anonymous.device.start(scopes=["projects.read"])
        device_approvals.approve(login.code.user_code, world.person().user_id, ["projects.read"])
        token = anonymous.device.redeem(login)
        gateway.losing = 1
        assert connect(anonymous.device.refresh(token.refresh_token).access_token).me.get().scopes == ["projects.read"]


class TestAWebhook:
    def test_is_verified(
        self, client: Assent, company: Company, world: World, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
    ):
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

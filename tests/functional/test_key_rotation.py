"""Rotating the signing secret, step by step: functions at adjacent steps accept what the others issued."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from controlplane.people import device_approvals
from controlplane.people.device import LIFE_SECONDS, USER_CODE_LETTERS
from controlplane.people.device_approvals import UnknownUserCode
from controlplane.platform.core.settings import SigningSecret, settings
from controlplane.platform.table.table import table
from tests.functional.dashboard.issuer import Issuer, callback
from tests.functional.device_auth.devices import refresh, request_code, works
from tests.support.api import Api, Reply
from tests.support.browser import Browser
from tests.support.calls import Call, Proceed, intercepted
from tests.support.crashes import Died, dies_at
from tests.support.rings import ADDED, ADDED_AGAIN, BEFORE, MIXED_FLEETS, NEW, SWITCHED, use_ring
from tests.support.world import Company, World


@dataclass
class Fleet:
    """Functions at two steps of a rotation: `first` serves one request, `second` the next."""

    first: Callable[[], None]
    second: Callable[[], None]


@pytest.fixture(params=MIXED_FLEETS, ids=["added later", "added first", "switched later", "switched first"])
def fleet(request, monkeypatch):
    one, other = request.param
    return Fleet(lambda: use_ring(monkeypatch, one), lambda: use_ring(monkeypatch, other))


@pytest.fixture
def only_new(monkeypatch):
    """Returns functions with the old key, followed by functions without it."""
    return Fleet(lambda: use_ring(monkeypatch, BEFORE), lambda: use_ring(monkeypatch, SigningSecret(current=NEW)))


@pytest.fixture
def issuer(monkeypatch):
    running = Issuer()
    monkeypatch.setattr("dashboard.access.sign_in._providers", {})
    monkeypatch.setitem(settings.__dict__, "sign_in_issuer", running.url)
    monkeypatch.setitem(settings.__dict__, "sign_in_client_id", running.client_id)
    yield running
    running.close()


def create_key(api: Api, company: Company, name: str = "deploy") -> Reply:
    path = f"/v1/api-keys?organizationId={company.organization_id}"
    return api.post(path, company.owner.token, json_body={"name": name}, headers={"Idempotency-Key": "one-of-mine"})


def keys_of(api: Api, company: Company, query: str = "") -> Reply:
    return api.get(f"/v1/api-keys?organizationId={company.organization_id}{query}", company.owner.token)


@contextmanager
def dead_before_creation() -> Iterator[None]:
    """Kills the function after it has stored the Idempotency-Key and before the creation's transaction."""
    interrupted = []

    def around(call: Call, proceed: Proceed) -> Any:
        # Storing the key is a transaction of two items while the ring has two keys.
        if interrupted or len(call.parameters.get("TransactItems", ())) > 2:
            interrupted.append(call)
            raise Died
        return proceed()

    with intercepted(table.client, around):
        yield


def first_pair(api: Api, world: World) -> dict[str, Any]:
    pair: dict[str, Any] = request_code(api).approved(world.person().user_id).redeem().data
    return pair


@contextmanager
def choosing(letters: str) -> Iterator[None]:
    """Replaces the letters of the next user codes."""
    following, choose = iter(letters), secrets.choice
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "choice", lambda among: next(following) if among == USER_CODE_LETTERS else choose(among))
        yield


class TestAcrossAMixedFleet:
    def test_a_session_survives_the_rotation(self, api, world, fleet):
        fleet.first()
        browser = Browser(api).signed_in(world.person().user_id)
        assert browser.get("/organizations").status == 200
        fleet.second()
        assert browser.get("/organizations").status == 200

    def test_a_device_is_approved_and_redeems_its_code_across_the_rotation(self, api, world, fleet):
        browser = Browser(api).signed_in(world.person().user_id)
        fleet.first()
        device = request_code(api, scope="projects.read")
        browser.get("/device")
        fleet.second()
        assert browser.press("Continue", fill={"Code": device.user_code}).status == 200
        fleet.first()
        assert browser.press("Approve").status == 200
        fleet.second()
        assert works(api, device.redeem().data["accessToken"])

    def test_a_user_code_is_not_issued_to_two_devices_until_it_has_expired(self, api, world, fleet, now):
        with choosing("BBBBBBBB" + "BBBBBBBB" + "CCCCCCCC"):
            fleet.first()
            assert request_code(api, deviceName="old").user_code == "BBBB-BBBB"
            fleet.second()
            assert request_code(api).user_code == "CCCC-CCCC"
        now.advance(LIFE_SECONDS)
        with choosing("BBBBBBBB"):
            assert request_code(api, deviceName="new").user_code == "BBBB-BBBB"
        fleet.first()
        assert device_approvals.find_by_user_code("BBBB-BBBB", world.person().user_id).device_name == "new"

    def test_a_refresh_token_is_rotated_and_revokes_its_family_if_it_is_reused(self, api, world, fleet, now):
        fleet.first()
        token = first_pair(api, world)["refreshToken"]
        for _ in range(3):
            fleet.second()
            pair, used = refresh(api, token).data, token
            fleet.first()
            assert refresh(api, token).data["refreshToken"] == pair["refreshToken"]
            assert works(api, pair["accessToken"])
            token = pair["refreshToken"]
        now.advance(61)
        assert refresh(api, used).status == 401
        assert not works(api, pair["accessToken"])

    def test_a_cursor_continues_its_list(self, api, world, fleet):
        company = world.company()
        made = {world.key(company) for _ in range(2)}
        fleet.first()
        page = keys_of(api, company, "&limit=1")
        fleet.second()
        following = keys_of(api, company, f"&limit=1&cursor={page.body['pagination']['nextCursor']}")
        assert len(made) == len({shown["keyId"] for shown in page.data + following.data})

    def test_a_sign_in_in_progress_is_completed(self, api, issuer, fleet):
        browser = Browser(api)
        fleet.first()
        leads_to = browser.get("/sign-in").headers["location"]
        fleet.second()
        assert browser.get(callback(issuer.authorize(leads_to, "subject-1"))).status == 303
        assert browser.get("/organizations").status == 200


class TestARetriedCreation:
    def test_a_retried_creation_returns_the_same_response_and_secret(self, api, world, fleet):
        company = world.company()
        fleet.first()
        first = create_key(api, company)
        for turn in (fleet.second, fleet.first):
            turn()
            again = create_key(api, company)
            assert again.headers["idempotency-replayed"] == "true"
            assert again.data == first.data
        assert len(keys_of(api, company).data) == 1

    def test_a_retried_creation_doesnt_run_again_after_a_crash_following_the_effect(self, api, world, fleet, now):
        company = world.company()
        fleet.first()
        with dies_at("UpdateItem", applied=False):
            assert create_key(api, company).status == 500
        fleet.second()
        assert create_key(api, company).error["details"] == {"reason": "in_flight"}
        now.advance(31)
        assert create_key(api, company).error["details"] == {"reason": "answer_lost"}
        assert len(keys_of(api, company).data) == 1

    def test_a_retried_creation_runs_after_a_crash_before_the_effect(self, api, world, fleet, now):
        company = world.company()
        fleet.first()
        with dead_before_creation():
            assert create_key(api, company).status == 500
        fleet.second()
        now.advance(31)
        created = create_key(api, company)
        fleet.first()
        assert create_key(api, company).data == created.data
        assert len(keys_of(api, company).data) == 1


class TestAfterTheOldKeyIsDropped:
    """The operations guide describes these effects, and tells operators to wait because of them."""

    def test_credentials_issued_with_the_new_key_keep_working(self, api, world, now, monkeypatch):
        company = world.company()
        use_ring(monkeypatch, SWITCHED)
        token = first_pair(api, world)["refreshToken"]
        created = create_key(api, company)
        use_ring(monkeypatch, ADDED_AGAIN)
        assert refresh(api, token).status == 200
        assert create_key(api, company).data == created.data

    def test_credentials_issued_with_the_old_key_end_and_sessions_continue(self, api, world, only_new, issuer):
        company = world.company()
        browser, stranger = Browser(api).signed_in(company.owner.user_id), Browser(api)
        for _ in range(2):
            world.key(company)
        only_new.first()
        token = first_pair(api, world)["refreshToken"]
        device = request_code(api)
        cursor = keys_of(api, company, "&limit=1").body["pagination"]["nextCursor"]
        leads_to = stranger.get("/sign-in").headers["location"]
        browser.get("/device")
        only_new.second()
        assert refresh(api, token).status == 401
        with pytest.raises(UnknownUserCode):
            device_approvals.approve(device.user_code, company.owner.user_id, [])
        assert keys_of(api, company, f"&limit=1&cursor={cursor}").status == 400
        assert stranger.get(callback(issuer.authorize(leads_to, "subject-1"))).status == 400
        assert browser.press("Continue", fill={"Code": "BBBB-BBBB"}).status == 403
        assert browser.get("/organizations").status == 200

    def test_a_refresh_whose_successors_cant_be_derived_is_refused(self, api, world, monkeypatch):
        use_ring(monkeypatch, ADDED)
        token = first_pair(api, world)["refreshToken"]
        use_ring(monkeypatch, SWITCHED)
        refresh(api, token)
        use_ring(monkeypatch, BEFORE)
        assert refresh(api, token).status == 401

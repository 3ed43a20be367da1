"""`assent-ops user revoke` and `user delete`: the end of a person's access."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.access import sign_in
from controlplane.organizations import store as organizations
from controlplane.people import device, device_approvals, sessions, token_families
from controlplane.platform.table import keys
from controlplane.platform.table.legs import encode_item
from controlplane.platform.table.table import table
from tests.functional.device_auth.devices import get_request
from tests.functional.ops.conftest import Ops
from tests.functional.ops.shop import identity
from tests.support.api import Api
from tests.support.calls import Call, Proceed, intercepted
from tests.support.populated_organization import kinds_containing
from tests.support.world import Person, World, table_dump


class Guest:
    """A person with every kind of credential: a sign-in, a session, a token, a device, and a pending device request."""

    def __init__(self, world: World) -> None:
        self.email = "ada@example.com"
        self.user_id = sign_in.sign_in(identity("subject")).user_id
        self.person = Person(self.user_id, self.email, "Ada", "")
        self.waiting = self._approved("laptop")
        pair = device.redeem(get_request(self._approved("desktop")))
        self.refresh_token = pair.refresh_token
        self.bearers = [sessions.create(self.user_id), world.token(self.user_id), pair.access_token]

    def _approved(self, name: str) -> str:
        issued = device.create(
            "assent-cli", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", ["projects.read"], name, "::1"
        )
        device_approvals.approve(issued.user_code, self.user_id, ["projects.read"])
        return issued.device_code

    def statuses(self, api: Api) -> list[int]:
        return [api.get("/v1/me", bearer).status for bearer in self.bearers]

    def assert_out(self, api: Api) -> None:
        assert self.statuses(api) == [401, 401, 401]
        waiting = device.find(self.waiting)
        assert waiting is None or waiting.status == "denied"
        with pytest.raises(token_families.UnknownRefreshToken):
            token_families.rotate(self.refresh_token)


@pytest.fixture
def guest(world: World) -> Guest:
    return Guest(world)


def around_scans(act: Callable[[], Any]) -> Callable[[Call, Proceed], Any]:
    """Returns an interceptor of the table's calls that acts before each scan."""

    def around(call: Call, proceed: Proceed) -> Any:
        if call.operation == "Scan":
            act()
        return proceed()

    return around


@pytest.mark.parametrize("verb", ["revoke", "delete"])
def test_asks_first(verb: str, ops: Ops, api: Api, guest: Guest):
    before = table_dump()
    assert "--yes" in ops("user", verb, guest.email).error["message"]
    assert table_dump() == before
    assert guest.statuses(api) == [200, 200, 200]


def test_revoke_ends_every_credential_without_a_scan(ops: Ops, api: Api, world: World, guest: Guest):
    company = world.company()
    key, scans = world.key(company), []
    with intercepted(table.client, around_scans(lambda: scans.append(None))):
        done = ops("user", "revoke", guest.email, "--yes").document
    # A session and a token; a device that redeemed its code, and one that hasn't yet.
    assert done == {"userId": guest.user_id, "email": guest.email, "tokens": 2, "devices": 2, "signIns": 0}
    assert scans == []
    guest.assert_out(api)
    assert api.get("/v1/me", company.owner.token).status == api.get("/v1/me", key).status == 200
    before = table_dump()
    again = ops("user", "revoke", guest.user_id, "--yes").document
    assert (again["tokens"], again["devices"]) == (0, 0)
    assert table_dump() == before
    assert sign_in.sign_in(identity("subject")).user_id == guest.user_id


class TestDelete:
    def test_the_account_and_every_credential_are_gone(self, ops: Ops, api: Api, world: World, guest: Guest):
        company, invited = world.company(), world.company()
        world.member(company, "admin", guest.person)
        invited_at = {"email": "ADA@example.com", "role": "member"}
        api.post("/v1/invitations", invited.owner.token, json_body=invited_at)
        done = ops("user", "delete", guest.email, "--yes").document
        assert done == {
            "deleted": True,
            "userId": guest.user_id,
            "tokens": 2,
            "devices": 2,
            "signIns": 1,
            "memberships": 1,
            "invitations": 1,
            "erased": {"counter": 1, "invitation": 1},
        }
        guest.assert_out(api)
        assert api.get("/v1/me", company.owner.token).status == 200
        assert sign_in.sign_in(identity("subject")).user_id != guest.user_id

    def test_every_credential_is_gone_before_the_search_for_texts(self, ops: Ops, api: Api, guest: Guest):
        checked = []

        def check() -> None:
            if not checked:
                checked.append(None)
                guest.assert_out(api)
                assert "FAMILY" not in kinds_containing(guest.user_id)

        with intercepted(table.client, around_scans(check)):
            ops("user", "delete", guest.email, "--yes")
        assert checked
        assert "desktop" not in str(table_dump())
        assert not [item for item in table_dump() if guest.user_id in str(item)]

    def test_a_last_owner_is_refused_and_told_the_organizations(self, ops: Ops, api: Api, world: World, guest: Guest):
        first, second = world.company(owner=guest.person), world.company(owner=guest.person)
        shared = world.company(owner=guest.person)
        world.member(shared, "owner")
        before = table_dump()
        outcome = ops("user", "delete", guest.email, "--yes")
        assert outcome.exit_code == 1
        assert f"last owner of {', '.join(sorted((first.slug, second.slug)))}." in outcome.error["message"]
        assert table_dump() == before
        assert guest.statuses(api) == [200, 200, 200]
        for company in (first, second):
            world.member(company, "owner")
        ops("user", "delete", guest.email, "--yes")
        organization = organizations.find_organization(shared.organization_id)
        assert organization is not None
        assert organization.owners == 1
        assert table.get(keys.member(shared.organization_id, guest.user_id)) is None

    def test_an_interrupted_deletion_is_finished_by_id(self, ops: Ops, api: Api, guest: Guest):
        for key in (keys.user(guest.user_id), keys.user_email(guest.email)):
            table.client.delete_item(TableName=table.name, Key=encode_item(key._asdict()))
        assert ops("user", "delete", guest.email, "--yes").exit_code == 3
        assert ops("user", "delete", guest.user_id, "--yes").document["signIns"] == 1
        guest.assert_out(api)
        assert ops("user", "delete", guest.user_id, "--yes").exit_code == 3

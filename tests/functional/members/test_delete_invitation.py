"""DELETE /v1/invitations/{invitationId}: cancels an invitation."""

import pytest

from controlplane.store import keys
from controlplane.store.table import table
from tests.functional.conftest import FakeClock
from tests.support.api import Api
from tests.support.each import each
from tests.support.world import ALL_SCOPES, Company, World, table_dump

PATH = "/v1/invitations"
WEEK = 7 * 24 * 3600


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def invitation(api: Api, company: Company) -> str:
    """Returns the ID of a pending invitation for the owner role."""
    body = {"email": "Grace@example.com", "role": "owner"}
    return str(api.post(PATH, company.owner.token, json_body=body).data["id"])


class Test200:
    @pytest.mark.parametrize("role", ["owner", "admin"])
    def test_canceling_removes_the_invitation_and_the_lock_of_its_address(
        self, api: Api, world: World, company: Company, invitation: str, role
    ):
        reply = api.delete(f"{PATH}/{invitation}", world.member(company, role).token)
        assert reply.status == 200
        assert reply.data == {"deleted": True}
        assert api.get(PATH, company.owner.token).data == []
        assert table.get(keys.invitation(company.organization_id, invitation[20:])) is None
        assert table.get(keys.invitee("grace@example.com", company.organization_id)) is None

    def test_canceling_keeps_other_invitations(self, api: Api, company: Company, invitation: str):
        body = {"email": "ada@example.com", "role": "member"}
        other = api.post(PATH, company.owner.token, json_body=body).data
        api.delete(f"{PATH}/{invitation}", company.owner.token)
        assert api.get(PATH, company.owner.token).data == [other]


class Test403:
    def test_returns_403_if_a_member_cancels(self, api: Api, world: World, company: Company, invitation: str):
        assert api.delete(f"{PATH}/{invitation}", world.member(company).token).code == "FORBIDDEN"
        assert len(api.get(PATH, company.owner.token).data) == 1

    def test_returns_403_for_an_api_key_and_for_a_token_without_the_scope(
        self, api: Api, world: World, company: Company, invitation: str
    ):
        scopes = [scope for scope in ALL_SCOPES if scope != "members.write"]
        for token in (world.key(company), world.token(company.owner.user_id, scopes)):
            assert api.delete(f"{PATH}/{invitation}", token).error["details"] == {"requiredScope": "members.write"}


class Test404:
    def test_another_organizations_invitation_looks_like_an_unknown_one(
        self, api: Api, world: World, company: Company, invitation: str
    ):
        stranger = world.company().owner
        before = len(table_dump())
        foreign = api.delete(f"{PATH}/{invitation}", stranger.token)
        unknown = api.delete(f"{PATH}/inv_{'0' * 34}", stranger.token)
        assert (foreign.status, foreign.text) == (404, unknown.text)
        assert len(table_dump()) == before

    def test_returns_404_for_a_canceled_invitation(self, api: Api, company: Company, invitation: str):
        assert api.delete(f"{PATH}/{invitation}", company.owner.token).status == 200
        again = api.delete(f"{PATH}/{invitation}", company.owner.token)
        unknown = api.delete(f"{PATH}/inv_{'0' * 34}", company.owner.token)
        assert (again.status, again.text) == (404, unknown.text)

    def test_returns_404_for_an_expired_invitation_that_is_still_stored(
        self, api: Api, world: World, company: Company, invitation: str, now: FakeClock
    ):
        token = world.token(company.owner.user_id, lifetime_seconds=2 * WEEK)
        now.advance(WEEK)
        assert api.delete(f"{PATH}/{invitation}", token).code == "NOT_FOUND"

    @each("named", ["x", "inv_", "inv_" + "l" * 34, "mem_" + "0" * 32, "%0A", "inv_" + "0" * 5000])
    def test_returns_404_for_a_malformed_id(self, api: Api, company: Company, named: str):
        assert api.delete(f"{PATH}/{named}", company.owner.token).code == "NOT_FOUND"

"""DELETE /v1/invitations/{invitationId}: cancels an invitation."""

import pytest

from controlplane.platform.core.roles import Role
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.functional.members.conftest import GRACE, Organization
from tests.support.api import Api
from tests.support.world import World, table_dump


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_canceling_removes_only_the_invitation_and_the_lock_of_its_address(role: Role, acme: Organization):
    invitation_id, other = acme.invited("Grace@example.com", "owner"), acme.invited("ada@example.com")
    reply = acme.cancel(invitation_id, by=acme.member(role))
    assert (reply.status, reply.data) == (200, {"deleted": True})
    assert acme.pending() == [other]
    assert table.get(keys.invitation(acme.id, invitation_id[20:])) is None
    assert acme.lock_of(GRACE) is None
    assert acme.cancel(invitation_id).code == "NOT_FOUND"


def test_a_member_may_not_cancel(acme: Organization):
    invitation_id = acme.invited()
    assert acme.cancel(invitation_id, by=acme.member()).code == "FORBIDDEN"
    assert acme.pending() == [invitation_id]


def test_an_invitation_of_another_organization_looks_like_an_unknown_one(acme: Organization, api: Api, world: World):
    theirs = Organization(api, world).invited()
    before = len(table_dump())
    for send in (acme.cancel, acme.resend):
        replies = [send(invitation_id) for invitation_id in (theirs, f"inv_{'0' * 34}")]
        assert {(reply.status, reply.text) for reply in replies} == {(404, replies[0].text)}
    assert len(table_dump()) == before

"""GET and DELETE /v1/invitations: pending invitations, and canceling them."""

import pytest

from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.functional.conftest import FakeClock
from tests.functional.members.conftest import GRACE, WEEK, Organization, all_pages


def invite_guests(acme: Organization, count: int, now: FakeClock) -> list[str]:
    """Returns the IDs of new invitations, the newest one first."""
    made = []
    for number in range(count):
        made.append(acme.invited(f"guest{number}@example.com"))
        now.advance(0.002)
    return made[::-1]


def test_every_member_sees_an_invitation_as_returned_at_its_creation(acme, api, world):
    Organization(api, world).invite()
    created = acme.invite(role="admin").data
    for caller in (acme.owner, acme.member()):
        reply = acme.call("GET", "invitations", caller)
        assert (reply.status, reply.data) == (200, [created])
        assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}


def test_the_newest_are_listed_first_over_all_pages(acme, now):
    made = invite_guests(acme, 5, now)
    for limit in (1, 2, 5, 100):
        assert [it["id"] for it in all_pages(acme, "invitations", limit)] == made


def test_a_page_is_full_despite_a_void_invitation(acme, now):
    made, admin = invite_guests(acme, 4, now), acme.member("admin")
    acme.invite("void@example.com", by=admin)
    acme.world.leave(acme.company, admin)
    assert [it["id"] for it in all_pages(acme, "invitations", 2)] == made


def test_an_expired_invitation_that_is_still_stored_is_omitted_and_gets_404(acme, now):
    now.seconds += 0.75
    first = acme.invited("first@example.com")
    now.advance(60)
    second = acme.invited("second@example.com")
    now.seconds = int(now.seconds) - 60 + WEEK - 0.001
    assert acme.pending() == [second, first]
    now.seconds += 0.001
    assert acme.pending() == [second]
    assert (acme.cancel(first).code, acme.resend(first).code) == ("NOT_FOUND", "NOT_FOUND")
    assert table.get(keys.invitation(acme.id, first[20:])) is not None
    now.advance(60)
    assert acme.pending() == []


def test_paging_ends_if_the_rest_expired_since(acme, now):
    invite_guests(acme, 3, now)
    cursor = acme.call("GET", "invitations", query="&limit=1").body["pagination"]["nextCursor"]
    now.advance(WEEK)
    reply = acme.call("GET", "invitations", query=f"&cursor={cursor}")
    assert reply.body == {"success": True, "data": [], "pagination": {"nextCursor": None, "hasMore": False}}


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_canceling_removes_only_the_invitation_and_the_lock_of_its_address(role, acme):
    invitation_id, other = acme.invited("Grace@example.com", "owner"), acme.invited("ada@example.com")
    reply = acme.cancel(invitation_id, by=acme.member(role))
    assert (reply.status, reply.data) == (200, {"deleted": True})
    assert acme.pending() == [other]
    assert table.get(keys.invitation(acme.id, invitation_id[20:])) is None
    assert acme.lock_of(GRACE) is None
    assert acme.cancel(invitation_id).code == "NOT_FOUND"

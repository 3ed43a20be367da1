"""Operations on invitations: create, list, and cancel."""

import pytest

from controlplane.organizations import invitations
from controlplane.platform.core import ids
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Put, table
from tests.functional.conftest import FakeClock
from tests.functional.members.conftest import (
    ADMIN_REQUIRED,
    GRACE,
    OWNER_REQUIRED,
    WEEK,
    Organization,
    check_invariants,
)
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import table_dump


def test_an_invitation_is_pending_for_seven_days_and_names_its_inviter(acme, now):
    reply = acme.invite("Grace.Hopper@Example.com", "admin")
    invitation_id, owner = reply.data["id"], acme.owner
    assert invitation_id.startswith("inv_" + acme.id[4:])
    assert (reply.status, reply.data) == (
        201,
        {
            "id": invitation_id,
            "email": "Grace.Hopper@Example.com",
            "role": "admin",
            "status": "pending",
            "createdAt": "2026-03-04T05:06:07.000Z",
            "expiresAt": "2026-03-11T05:06:07.000Z",
            "invitedBy": {"id": owner.user_id, "name": owner.name, "email": owner.email},
        },
    )
    seen = acme.call("GET", "invitations", acme.member())
    assert (seen.data, seen.body["pagination"]) == ([reply.data], {"nextCursor": None, "hasMore": False})
    lock, listed = acme.lock_of("grace.hopper@example.com"), table.get(keys.invitation(acme.id, invitation_id[20:]))
    assert lock["invitationId"] == listed["invitationId"] == invitation_id
    assert lock["expiresAt"] == listed["expiresAt"] == int(now.seconds) + WEEK
    longest = "a" * 64 + "@" + ".".join(["b" * 63, "c" * 63, "d" * 59, "en"])
    assert (len(longest), acme.invite(longest).data["email"]) == (255, longest)


@each(
    ("caller", "allowed", "refused", "details"),
    [
        ("owner", ["owner", "admin", "member"], [], None),
        ("admin", ["admin", "member"], ["owner"], OWNER_REQUIRED),
        ("member", [], ["owner", "member"], ADMIN_REQUIRED),
    ],
)
def test_owners_invite_to_every_role_and_admins_below_owner(caller, allowed, refused, details, acme):
    person = acme.member(caller)
    for role in allowed:
        assert acme.invite(f"{caller}.{role}@example.com", role, by=person).data["role"] == role
    for role in refused:
        reply = acme.invite(f"{caller}.{role}@example.com", role, by=person)
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert details is None or reply.error["details"] == details
        assert acme.lock_of(f"{caller}.{role}@example.com") is None


def test_the_inviter_is_shown_as_they_were_and_has_lost_the_role_after_leaving(acme, world):
    admin = acme.member("admin")
    first = acme.invite(by=admin).data["invitedBy"]
    roster = table.get(keys.member(acme.id, admin.user_id))
    table.put(Put({**roster, "name": "Grace Hopper"}), PREPARED)
    assert acme.call("GET", "invitations").data[0]["invitedBy"] == first
    limits, stranger = invitations.Limits(1, 1), world.person().user_id
    with pytest.raises(invitations.RoleLost):
        invitations.create_invitation(acme.id, "a@b.co", "member", inviter_id=stranger, limits=limits, extra_legs={})


def test_an_address_can_be_invited_again_once_its_invitation_has_expired_or_is_gone(acme, now):
    first = acme.invited("Grace@example.com")
    now.advance(WEEK - 1)
    assert acme.invite().status == 409
    now.advance(1)
    second = acme.invited()
    assert acme.pending() == [second]
    assert table.get(keys.invitation(acme.id, first[20:])) is None
    check_invariants()
    now.advance(WEEK)
    with before_the_transaction(table.client, lambda: acme.world.invitation(acme.company, GRACE)):
        assert acme.invite().code == "CONFLICT"
    (third,) = acme.pending()
    acme.cancel(third)
    table.delete(Delete(keys.invitation(acme.id, acme.invited()[20:])), PREPARED)
    assert acme.invite().status == 201


def test_an_id_that_is_taken_is_replaced(acme, monkeypatch):
    first, new_local = acme.invited(), ids.new_local
    taken = iter([first[20:]])
    monkeypatch.setattr(ids, "new_local", lambda: next(taken, None) or new_local())
    acme.invite("ada@example.com")
    listed = acme.call("GET", "invitations").data
    assert {invitation["email"] for invitation in listed} == {GRACE, "ada@example.com"}


# tests/unit/test_naming.py has the forms of addresses.
@each(
    "email",
    [
        "Ada <ada@example.com>",
        "a" * 64 + "@" + ".".join(["b" * 63, "c" * 63, "d" * 60, "en"]),
        "a@" + "b." * 300_000 + "co",
    ],
)
def test_an_invalid_address_is_named_and_nothing_is_written(email, acme):
    before = len(table_dump())
    reply = acme.invite(email, "member")
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert [problem["path"] for problem in reply.error["details"]] == [["email"]]
    assert len(table_dump()) == before


def test_a_pending_address_is_refused_in_any_letter_case_and_only_here(acme, api, world):
    first, other = acme.invite("gracE@example.com").data, Organization(api, world)
    before = len(table_dump())
    for email in (GRACE, "GRACE@EXAMPLE.COM", "Grace@example.Com"):
        reply = acme.invite(email, "admin")
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {
            "field": "email",
            "reason": "already_invited",
            "invitationId": first["id"],
            "expiresAt": first["expiresAt"],
        }
    assert len(table_dump()) == before
    assert acme.call("GET", "invitations").data == [first]
    assert [other.invite().status, acme.invite(other.owner.email).status] == [201, 201]


def test_the_address_of_a_member_is_refused_until_the_member_left(acme):
    person = acme.member()
    for email in (person.email, person.email.upper(), acme.owner.email):
        reply = acme.invite(email)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"field": "email", "reason": "already_member"}
    assert acme.pending() == []
    acme.world.leave(acme.company, person)
    assert acme.invite(person.email).status == 201


def invite_guests(acme: Organization, count: int, now: FakeClock) -> list[str]:
    """Returns the IDs of new invitations, the newest one first."""
    made = []
    for number in range(count):
        made.append(acme.invited(f"guest{number}@example.com"))
        now.advance(0.002)
    return made[::-1]


def test_pages_are_full_without_those_that_are_void(acme, now):
    made, admin = invite_guests(acme, 5, now), acme.member("admin")
    acme.invite("void@example.com", by=admin)
    acme.world.leave(acme.company, admin)
    for limit in (1, 2, 5, 100):
        pages = [page.data for page in acme.api.pages(f"/v1/invitations?limit={limit}", acme.owner.token)]
        assert {len(page) for page in pages[:-1]} <= {limit}
        assert [it["id"] for page in pages for it in page] == made


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

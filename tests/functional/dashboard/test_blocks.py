"""POST /invitations/block, GET /invitations/blocked, POST /invitations/unblock; and page sizes of the lists."""

from dataclasses import replace

import pytest

from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.organizations.invitees import BlockItem
from controlplane.platform.core import clock
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from dashboard.account.invitations import BLOCKED_PER_PAGE, ON_PAGE
from tests.functional.dashboard.test_invitations import invite, pending, role_of
from tests.support.browser import Browser, text_of
from tests.support.calls import Call, Proceed, intercepted
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import Company, Person, World

BLOCK, BLOCKED, UNBLOCK = "/invitations/block", "/invitations/blocked", "/invitations/unblock"
HINT = "There are more invitations. Answer some of these to see them."


@pytest.fixture
def company(world: World) -> Company:
    return world.company(name="Acme")


@pytest.fixture
def blocker(visitor: Browser, company: Company, person: Person) -> Browser:
    """Returns a browser whose person has blocked the company."""
    invite(visitor, company, person.email)
    visitor.get("/invitations")
    reply = visitor.follow(visitor.press("Decline and block"))
    assert "You declined the invitation and blocked the organization." in text_of(reply)
    return visitor


class TestBlocked:
    def test_blocking_hides_further_invitations_until_the_organization_is_unblocked(self, blocker, company, person):
        assert (pending(blocker, company), role_of(person, company)) == ([], None)
        invitation_id = invite(blocker, company, person.email)
        assert [shown["id"] for shown in pending(blocker, company)] == [invitation_id]  # it isn't told
        assert "Acme" not in blocker.get("/invitations").text
        assert "waiting for you" not in text_of(blocker.get("/"))
        page = blocker.get(BLOCKED)
        assert "Acme Blocked on March 4, 2026." in text_of(page)
        assert "You unblocked Acme." in text_of(blocker.press("Unblock"))
        assert "You have not blocked any organization." in text_of(blocker.get(BLOCKED))
        assert "Acme" in blocker.get("/invitations").text
        assert blocker.press("Unblock", on=page).status == 404

    def test_blocking_leaves_other_organizations_and_users_alone(self, blocker: Browser, company, world, person):
        friend = world.person()
        invite(blocker, world.company(name="Birch"), person.email)
        invite(blocker, company, friend.email)
        assert "Birch" in blocker.get("/invitations").text
        assert "Acme" in Browser(blocker.api).signed_in(friend.user_id).get("/invitations").text

    def test_only_your_own_invitation_can_be_blocked(self, visitor: Browser, company: Company):
        for named in (invite(visitor, company, "someone@example.com"), "", "x", "inv_" + "0" * 34):
            assert visitor.forge(BLOCK, {"invitation_id": named}).status == 404
        assert len(pending(visitor, company)) == 1

    @each("named", ["", "x", "org_" + "0" * 16, "é"])
    def test_unblocking_an_organization_that_isnt_blocked_returns_404(self, visitor: Browser, named: str):
        reply = visitor.forge(UNBLOCK, {"organization_id": named})
        assert (reply.status, "You haven't blocked this organization." in text_of(reply)) == (404, True)

    def test_blocked_organizations_are_paginated(self, visitor: Browser, person: Person):
        made = sorted(f"org_{number:016d}" for number in range(BLOCKED_PER_PAGE + 1))
        blocks = (BlockItem(organization_id=it, name=it, created_at=clock.timestamp()) for it in made)
        table.put_all((it.to_item(person.user_id) for it in blocks), PREPARED)
        visitor.get(BLOCKED)
        assert visitor.offers("Unblock") == BLOCKED_PER_PAGE
        visitor.press("Next page")
        assert (made[-1] in visitor.get(visitor.at).text, visitor.offers("Unblock")) == (True, 1)
        assert visitor.get(f"{BLOCKED}?after=x").status == 400


class TestManyInvitations:
    """Before the limit per address existed, an address could receive thousands of invitations."""

    COUNT = 130

    @pytest.fixture
    def flooded(self, visitor: Browser, world: World, company: Company, person: Person) -> Browser:
        invitation_id = invite(visitor, company, person.email)
        lock = table.get(keys.invitee(person.email, company.organization_id))
        located = InvitationId.stored(invitation_id)
        listed = table.get(keys.invitation(*located.location))
        organization = organizations.find_organization(company.organization_id)
        assert organization is not None
        items = []
        for number in range(self.COUNT):
            organization_id = f"org_{number:016d}"
            copy = f"inv_{number:016d}{located.local}"
            items += [
                {**lock, **keys.invitee(person.email, organization_id)._asdict(), "invitationId": copy},
                {**listed, **keys.invitation(organization_id, located.local)._asdict(), "invitationId": copy},
                replace(organization, organization_id=organization_id, name=f"Acme {number:03}").to_item(),
                {**keys.membership(company.owner.user_id, organization_id)._asdict(), "role": "owner"},
            ]
        table.put_all(items, PREPARED)
        return visitor

    def test_only_some_of_many_invitations_are_shown(self, flooded: Browser):
        assert HINT in text_of(flooded.get("/invitations"))
        assert flooded.offers("Accept") == ON_PAGE
        flooded.follow(flooded.press("Decline", near="Acme 000"))
        assert flooded.offers("Accept") == ON_PAGE

    def test_void_invitations_dont_hide_valid_ones(self, flooded: Browser, company: Company):
        memberships = (keys.membership(company.owner.user_id, f"org_{it:016d}") for it in range(self.COUNT))
        table.delete_all([*memberships], PREPARED)
        assert "invites you to be a member" in text_of(flooded.get("/invitations"))
        assert flooded.offers("Accept") == 1
        assert "1 invitation is waiting for you" in text_of(flooded.get("/"))

    def test_void_invitations_are_no_further_ones_unless_not_all_were_read(self, flooded, company, monkeypatch):
        inviters = [
            keys.membership(company.owner.user_id, organization_id)
            for organization_id in (company.organization_id, *(f"org_{it:016d}" for it in range(ON_PAGE, self.COUNT)))
        ]
        table.delete_all(inviters[:-1], PREPARED)
        assert HINT in text_of(flooded.get("/invitations"))
        table.delete_all(inviters, PREPARED)
        assert HINT not in text_of(flooded.get("/invitations"))
        assert flooded.offers("Accept") == ON_PAGE
        monkeypatch.setattr(invitees, "_MAX_PAGES", 1)
        assert HINT in text_of(flooded.get("/invitations"))

    def test_counting_invitations_doesnt_read_them_all(self, flooded: Browser):
        read: list[str] = []

        def around(call: Call, proceed: Proceed) -> object:
            answer = proceed()
            found = answer.get("Items", []) if call.operation == "Query" else []
            read.extend(item["pk"]["S"] for item in found if item["pk"]["S"].startswith("INVITEE#"))
            return answer

        with intercepted(table.client, around):
            text = text_of(flooded.get("/"))
        assert "20+ invitations are waiting for you" in text
        assert 0 < len(read) <= 60

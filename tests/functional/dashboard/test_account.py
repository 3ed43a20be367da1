"""GET /account, GET /account/export, GET and POST /account/delete."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from controlplane.access.sign_in import Claims, sign_in
from controlplane.erasure import deletions
from controlplane.feedback import store as feedback
from controlplane.organizations import invitees, members
from controlplane.organizations import store as organizations
from controlplane.organizations.invitees import BlockItem
from controlplane.people import users
from controlplane.platform.core import clock
from controlplane.platform.table.table import Put, table
from ops import accounts
from tests.functional.device_auth.devices import request_code
from tests.support.browser import Browser, text_of
from tests.support.calls import Call, Proceed, intercepted
from tests.support.cleanup import finish_deletions
from tests.support.populated_organization import kinds_containing
from tests.support.reply import Reply
from tests.support.table import PREPARED
from tests.support.trips import counted_trips
from tests.support.world import Person, table_dump

DELETE = "/account/delete"
ADDRESS = "Your email address"
REPORT = {"title": "Too slow", "body": "Scans take long.", "kind": "bug"}


@pytest.fixture
def person(world):
    claims = Claims(
        issuer="https://issuer.example",
        subject="ada",
        email="ada@example.com",
        email_verified=True,
        name="Ada <Lovelace>",
        image=None,
    )
    user_id = sign_in(claims).user_id
    return Person(user_id, "ada@example.com", "Ada <Lovelace>", world.token(user_id))


def delete(visitor: Browser, typed: str) -> Reply:
    visitor.get(DELETE)
    return visitor.press("Delete my account", fill={ADDRESS: typed})


class TestExport:
    def test_contains_everything_that_keys_find_and_no_secret(self, visitor, person, world):
        company, other = world.company(owner=person, name="Acme"), world.company(name="Birch")
        shown = visitor.get("/account")
        for text in ("Ada <Lovelace>", person.email, person.user_id):
            assert text in text_of(shown)
        assert f'href="/organizations/{company.slug}"' in shown.text.partition("<main")[2]
        invitation = world.invitation(other, person.email).invitation_id
        feedback.submit_report(person.user_id, REPORT)
        blocked = world.company(name="Dogwood")
        block = BlockItem(organization_id=blocked.organization_id, name="Dogwood", created_at=clock.timestamp())
        table.put(Put(block.to_item(person.user_id)), PREPARED)
        world.company(name="Cedar")
        reply = visitor.get("/account/export")
        assert reply.headers["content-disposition"] == 'attachment; filename="my-data.json"'
        exported = json.loads(reply.text)
        assert exported["userId"] == person.user_id
        kinds = "account address identity invitation membership feedback credentials blocks"
        assert {item["kind"] for item in exported["items"]} >= {*kinds.split()}
        for text in (person.email, company.organization_id, "Too slow", invitation, blocked.organization_id):
            assert text in reply.text
        for text in ("Cedar", person.token, visitor.secret):
            assert text not in reply.text
        # What the operator's export has, except for what only a search of the table finds.
        assert not any("digest" in item["attributes"] for item in exported["items"])

    def test_many_and_long_reports_take_no_further_round_trip(self, visitor, person):
        for number in range(6):
            feedback.submit_report(person.user_id, {"category": "bug", "message": f"{number} " + "long " * 900})
        visitor.get("/account")  # the first request of a minute
        with counted_trips() as trips:
            reply = visitor.get("/account/export")
        assert trips.taken <= 3
        reports = [it["attributes"] for it in json.loads(reply.text)["items"] if it["attributes"].get("message")]
        assert sorted(it["message"][:7] for it in reports) == [f"{number} long " for number in range(6)]
        assert not any("detached" in it for it in reports)


class TestDeletion:
    def test_the_account_and_every_access_are_gone_after_its_address_is_entered(self, visitor, person, world):
        company = world.company()
        world.member(company, "admin", person)
        before = users.find_user(person.user_id)
        for typed in ("", "x", "eve@example.com", "<script>"):
            reply = delete(visitor, typed)
            assert (reply.status, "Nothing was deleted." in text_of(reply)) == (400, True)
        assert users.find_user(person.user_id) == before
        reply = delete(visitor, " ADA@example.com ")
        assert (reply.status, reply.headers["location"]) == (303, "/signed-out?done=deleted")
        assert visitor.cookies == {}
        assert visitor.api.get("/v1/me", person.token).status == 401
        assert organizations.get_account(person.user_id) == (None, [])
        assert users.find_user_by_email(person.email) is None
        roster = members.list_members(company.organization_id, 10, None).items
        assert [member.user_id for member in roster] == [company.owner.user_id]
        finish_deletions()
        assert not accounts.is_left_over(person.user_id)
        assert "Your account is deleted" in text_of(visitor.get("/signed-out?done=deleted"))

    def test_devices_invitations_blocks_and_feedback_are_deleted(self, visitor, person, world, now):
        world.invitation(world.company(), person.email)
        now.advance(8 * 86_400)  # it has expired
        visitor.signed_in(person.user_id)
        for name in ("Birch", "Cedar"):
            world.invitation(world.company(name=name), person.email)
        visitor.get("/invitations")
        visitor.press("Decline and block", near="Birch")
        assert len(invitees.list_all_blocked(person.user_id)) == 1
        feedback.submit_report(person.user_id, REPORT)
        request_code(visitor.api).approved(person.user_id).redeem()
        assert delete(visitor, person.email).status == 303
        assert not {item["pk"]["S"].partition("#")[0] for item in table_dump()} & {"DC", "FAMILY", "IDENTITY"}
        assert finish_deletions() == 1
        left = table_dump()
        assert not any(text in str(left) for text in (person.email, "Too slow", "INVITEE#"))
        # Counters of the last hour, which expire, and that they declined the other invitation.
        kinds = {item["pk"]["S"].partition("#")[0] for item in left if person.user_id in str(item)}
        assert kinds >= {"AUDITLOG", "FEEDBACKQUOTA"}
        assert kinds <= {"AUDITLOG", "FEEDBACKQUOTA", "TRIES"}

    def test_the_last_owner_of_an_organization_is_refused_by_name(self, visitor, person, world):
        company = world.company(owner=person, name="Acme")
        assert "You are the last owner of Acme" in text_of(visitor.get(DELETE))
        assert "Delete my account" not in visitor.buttons()
        assert visitor.forge(DELETE, {"confirmation": person.email}).status == 409
        assert organizations.find_membership(person.user_id, company.organization_id) is not None
        world.member(company, "owner")
        assert delete(visitor, person.email).status == 303

    def test_many_memberships_end_before_the_account_and_ownerships(self, visitor, person, world, monkeypatch):
        monkeypatch.setattr(deletions, "MEMBERSHIPS_OF_ACCOUNT", 1)
        owned = world.company()
        world.member(owned, "owner", person)
        world.member(world.company(), "member", person)
        with failing_write(2):
            assert delete(visitor, person.email).status == 500
        profile, left = organizations.get_account(person.user_id)
        assert (profile is not None, [held.slug for held in left]) == (True, [owned.slug])
        assert delete(visitor, person.email).status == 303
        assert organizations.get_account(person.user_id) == (None, [])

    # tests/races/test_account_deletion.py interrupts it anywhere.
    @pytest.mark.parametrize(("write", "status"), [(1, 500), (4, 500), (5, 303), (8, 303)])
    def test_an_interrupted_deletion_is_finished_by_the_form_or_the_sweep(self, browser, world, write, status):
        person = world.person()
        world.member(world.company(), "owner", person)
        request_code(browser.api).approved(person.user_id).redeem()
        page = browser.signed_in(person.user_id).get(DELETE)
        with failing_write(write):
            assert browser.press("Delete my account", fill={ADDRESS: person.email}).status == status
        if users.find_user(person.user_id) is not None:
            assert browser.press("Delete my account", fill={ADDRESS: person.email}, on=page).status == 303
        finish_deletions()
        assert browser.api.get("/v1/me", person.token).status == 401
        # What the person did, and a counter, which expires in minutes.
        assert kinds_containing(person.user_id, person.email) == {"AUDITLOG", "TRIES"}


@contextmanager
def failing_write(number: int) -> Iterator[None]:
    """Loses the connection at that write, before it is applied. Counting requests is no such write."""
    written = count(1)

    def around(call: Call, proceed: Proceed) -> Any:
        writes = call.operation in {"TransactWriteItems", "BatchWriteItem", "DeleteItem"}
        if writes and next(written) == number:
            raise RuntimeError("lost")
        return proceed()

    with intercepted(table.client, around):
        yield

"""GET /sign-in/callback: the account that an identity may open, and updates of the account's email address."""

import pytest

from controlplane.access import sign_in as store_sign_in
from controlplane.access import web_session
from controlplane.access.sign_in import Claims
from controlplane.organizations import store as organizations
from controlplane.people import identities, users
from controlplane.people.identities import Subject
from controlplane.people.users import UserItem
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import Delete, table
from tests.functional.dashboard.issuer import Issuer
from tests.functional.dashboard.test_sign_in import principal, sign_in
from tests.support.browser import Browser, text_of
from tests.support.calls import before_the_transaction, before_the_update_of
from tests.support.table import PREPARED
from tests.support.world import get_profile, table_dump

ADA = "ada@example.com"
OTHER_ISSUER = "https://elsewhere.example"


def account(browser: Browser) -> UserItem:
    return get_profile(principal(browser)["userId"])


class TestAnotherSubject:
    def _is_refused(self, browser: Browser, issuer: Issuer, ask: str = "the operator of this service") -> None:
        other = Browser(browser.api)
        before = table_dump()
        reply = sign_in(other, issuer, subject="subject-2")
        text = text_of(reply)
        assert (reply.status, "Sign in again" in text) == (403, True)
        assert "The account with this email address belongs to another sign-in" in text
        assert f"ask {ask} to move it to your new sign-in" in text
        assert web_session.cookie_name("session") not in other.cookies
        assert {item["pk"]["S"][:3] for item in table_dump() if item not in before} == {"IP#"}

    @pytest.mark.parametrize("in_advance", [False, True])
    def test_another_subject_of_the_issuer_never_takes_over_an_account(
        self, browser, issuer, world, in_advance, monkeypatch
    ):
        created = world.person(ADA).user_id if in_advance else None
        sign_in(browser, issuer)
        assert created in {principal(browser)["userId"], None}
        self._is_refused(browser, issuer)
        monkeypatch.setitem(settings.__dict__, "contact", "help@assent.test")
        self._is_refused(browser, issuer, "the operator of this service (help@assent.test)")
        sign_in(browser, issuer)
        assert account(browser).email == ADA

    def test_a_subject_of_another_issuer_joins_by_verified_address(self, browser, issuer, world):
        person = world.person(ADA)
        elsewhere = Subject(OTHER_ISSUER, "subject-1")
        for leg in identities.first_legs(elsewhere, person.user_id).values():
            table.put(leg, PREPARED)
        sign_in(browser, issuer)
        assert principal(browser)["userId"] == person.user_id

    def test_another_subject_gets_its_own_account_once_the_address_has_moved(self, browser, issuer):
        sign_in(browser, issuer)
        first = principal(browser)["userId"]
        issuer.changes = {"email": "countess@example.com"}
        sign_in(browser, issuer)
        assert principal(browser)["userId"] == first
        issuer.changes = {}
        other = Browser(browser.api)
        assert sign_in(other, issuer, subject="subject-2").status == 303
        assert principal(other)["userId"] != first


class TestConcurrentChanges:
    """Changes what a sign-in has read before it writes."""

    CLAIMS = Claims(issuer=OTHER_ISSUER, subject="ada", email=ADA, email_verified=True, name="Ada Lovelace", image=None)

    def test_neither_a_left_organization_nor_a_deleted_account_gets_a_name(self, world):
        company = world.company()
        person = world.member(company)
        with before_the_transaction(table.client, lambda: world.leave(company, person)):
            store_sign_in.refresh(get_profile(person.user_id), "Countess", None)
        assert table.get(keys.member(company.organization_id, person.user_id)) is None
        profile, key = get_profile(person.user_id), keys.user(person.user_id)
        with (
            before_the_update_of(table.client, "name", lambda: table.delete(Delete(key), PREPARED)),
            pytest.raises(WriteConflict),
        ):
            store_sign_in.refresh(profile, "Lovelace", None)
        assert table.get(key) is None


class TestAddress:
    @pytest.mark.parametrize(
        "email", ["\u212aate@corp.example", "kate@c\u00f6rp.example", None, "", "ada", "a b@example.com", 7]
    )
    def test_a_first_sign_in_with_an_unacceptable_address_says_why(self, browser, issuer, world, email):
        world.person("kate@corp.example")
        issuer.changes = {"email": email}
        reply = sign_in(browser, issuer)
        assert (reply.status, "gave no email address that can be used here" in text_of(reply)) == (403, True)

    def test_a_changed_address_updates_every_roster_and_shows_its_invitations(self, browser, issuer, world):
        sign_in(browser, issuer)
        user_id = account(browser).user_id
        assert not account(browser).rosters_pending
        made = [organizations.create_organization(slug, slug, user_id) for slug in ("one", "two")]
        world.invitation(world.company(name="Acme"), "countess@example.com")
        assert "Acme" not in browser.get("/invitations").text
        issuer.changes = {"email": "Countess@Example.com"}
        sign_in(browser, issuer)
        profile = account(browser)
        assert (profile.user_id, profile.email) == (user_id, "countess@example.com")
        assert not profile.rosters_pending
        assert users.find_user_by_email(ADA) is None
        assert users.find_user_by_email("countess@example.com") == profile
        for it in made:
            assert table.get(keys.member(it.organization_id, user_id))["email"] == "countess@example.com"
        browser.get("/invitations")
        assert browser.press("Accept").status == 303

    def test_a_changed_address_is_ignored_if_another_account_has_it(self, browser, issuer, world):
        other = world.person("countess@example.com")
        sign_in(browser, issuer)
        user_id = account(browser).user_id
        issuer.changes = {"email": "countess@example.com", "name": "Ada King"}
        assert sign_in(browser, issuer).status == 303
        assert account(browser).user_id == user_id
        assert (account(browser).email, account(browser).name) == (ADA, "Ada King")
        assert get_profile("countess@example.com").user_id == other.user_id

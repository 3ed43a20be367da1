"""GET and POST /organizations/new, and the welcome page of a person without an organization."""

import pytest

from controlplane.store import organizations
from controlplane.store.organizations import Account
from tests.support.browser import Browser, text_of
from tests.support.reply import Reply
from tests.support.world import Person, World

FORM = "/organizations/new"


@pytest.fixture(autouse=True)
def opened(visitor: Browser) -> None:
    visitor.get(FORM)


def account(person: Person) -> Account:
    return organizations.get_account(person.user_id)


def create(visitor: Browser, name: str, slug: str = "") -> Reply:
    return visitor.press("Create the organization", fill={"Name": name, "Slug": slug})


class TestCreated:
    def test_the_first_organization_is_created_on_the_welcome_page(self, visitor: Browser, person: Person):
        assert "Welcome, Ada Lovelace" in text_of(visitor.get("/"))
        reply = create(visitor, "  Acmé Shops ")
        assert (reply.status, reply.headers["location"]) == (303, "/organizations/acme-shops?done=created")
        (made,) = account(person).memberships
        assert (made.name, made.slug, made.role) == ("Acmé Shops", "acme-shops", "owner")
        assert "Your organization is ready." in text_of(visitor.get(reply.headers["location"]))
        assert "Create a project" in text_of(visitor.get(f"/organizations/{made.slug}?done=x"))

    @pytest.mark.parametrize("slug", [" birch-2 ", "abc", "a" * 20])
    def test_a_slug_can_be_chosen(self, visitor: Browser, person: Person, slug: str):
        assert create(visitor, "Acme", slug).status == 303
        assert [held.slug for held in account(person).memberships] == [slug.strip()]

    def test_an_invitation_can_be_accepted_on_the_welcome_page(self, visitor: Browser, person: Person, world: World):
        company = world.company(name="Cedar")
        body = {"email": person.email, "role": "admin"}
        visitor.api.post("/v1/invitations", company.owner.token, json_body=body)
        assert "Join Cedar" in text_of(visitor.get("/"))
        reply = visitor.press("Accept")
        assert reply.headers["location"] == f"/organizations/{company.slug}?done=joined"
        assert "You are now a member of Cedar, as admin." in text_of(visitor.follow(reply))


class TestRefused:
    def test_a_taken_slug_keeps_the_name_and_suggests_others(self, visitor: Browser, person: Person, world: World):
        world.company(name="Cedar")
        organizations.create_organization("Dogwood", "dogwood", world.person().user_id)
        reply = create(visitor, "Dogwood")
        assert reply.status == 409
        assert "for example dogwood-2, dogwood-3, dogwood-4" in text_of(reply)
        assert (visitor.entered("Name"), visitor.entered("Slug")) == ("Dogwood", "dogwood-2")
        assert visitor.press("Create the organization").status == 303
        assert [held.slug for held in account(person).memberships] == ["dogwood-2"]

    def test_the_address_of_the_form_is_no_slug(self, visitor: Browser, person: Person):
        reply = create(visitor, "New")
        assert reply.status == 409
        assert "new-2" in text_of(reply)
        assert account(person).memberships == []

    def test_an_invalid_name_or_slug_is_400_and_kept(self, visitor: Browser, person: Person):
        refused = [("Acme", slug) for slug in ("A", "a--b", "ab", "a" * 21)]
        for name, slug in (("", ""), ("  ", ""), ("x" * 101, ""), ("a\u202eb", ""), *refused):
            reply = visitor.forge(FORM, {"name": name, "slug": slug})
            assert reply.status == 400, (name, slug)
            assert (visitor.entered("Name"), visitor.entered("Slug")) == (name, slug)
        assert "&lt;script&gt;{{7*7}}" in create(visitor, "\u202e<script>{{7*7}}").text
        assert account(person).memberships == []

    def test_the_limit_of_owned_organizations_applies(self, visitor: Browser, person: Person, monkeypatch):
        from controlplane.core.settings import settings

        monkeypatch.setitem(settings.__dict__, "organizations_per_person", 1)
        assert create(visitor, "Acme").status == 303
        visitor.get(FORM)
        reply = create(visitor, "Birch")
        assert reply.status == 409
        assert "maximum number of organizations" in text_of(reply)
        assert len(account(person).memberships) == 1

"""GET and POST /organizations/new, and the welcome page of a person without an organization."""

import pytest

from controlplane.core.settings import settings
from controlplane.store import organizations
from tests.support.browser import Browser, text_of
from tests.support.reply import Reply
from tests.support.world import Person, World

FORM = "/organizations/new"


@pytest.fixture(autouse=True)
def opened(visitor: Browser) -> None:
    visitor.get(FORM)


def create(visitor: Browser, name: str, slug: str = "") -> Reply:
    return visitor.press("Create the organization", fill={"Name": name, "Slug": slug})


def slugs(person: Person) -> list[str]:
    return [held.slug for held in organizations.get_account(person.user_id).memberships]


class TestCreated:
    def test_the_first_organization_is_created_on_the_welcome_page(self, visitor: Browser, person: Person):
        assert "Welcome, Ada Lovelace" in text_of(visitor.get("/"))
        reply = create(visitor, "  Acmé Shops ")
        assert (reply.status, reply.headers["location"]) == (303, "/organizations/acme-shops?done=created")
        (made,) = organizations.get_account(person.user_id).memberships
        assert (made.name, made.slug, made.role) == ("Acmé Shops", "acme-shops", "owner")
        assert "Your organization is ready." in text_of(visitor.follow(reply))
        assert "Create a project" in text_of(visitor.get(f"/organizations/{made.slug}?done=x"))

    @pytest.mark.parametrize("slug", [" birch-2 ", "abc", "a" * 20])
    def test_a_slug_can_be_chosen(self, visitor: Browser, person: Person, slug: str):
        assert create(visitor, "Acme", slug).status == 303
        assert slugs(person) == [slug.strip()]

    def test_an_invitation_can_be_accepted_on_the_welcome_page(self, visitor: Browser, person: Person, world: World):
        company = world.company(name="Cedar")
        world.invitation(company, person.email, "admin")
        assert "Join Cedar" in text_of(visitor.get("/"))
        reply = visitor.press("Accept")
        assert reply.headers["location"] == f"/organizations/{company.slug}?done=joined"
        assert "You are now a member of Cedar, as admin." in text_of(visitor.follow(reply))


class TestRefused:
    def test_a_taken_slug_keeps_the_name_and_suggests_others(self, visitor: Browser, person: Person, world: World):
        organizations.create_organization("Dogwood", "dogwood", world.person().user_id)
        for name, suggestions in (("New", "new-2"), ("Dogwood", "for example dogwood-2, dogwood-3, dogwood-4")):
            reply = create(visitor, name)
            assert (reply.status, suggestions in text_of(reply)) == (409, True)
        assert (visitor.entered("Name"), visitor.entered("Slug")) == ("Dogwood", "dogwood-2")
        assert visitor.press("Create the organization").status == 303
        assert slugs(person) == ["dogwood-2"]

    def test_an_invalid_name_or_slug_is_400_and_kept(self, visitor: Browser, person: Person):
        refused = [("Acme", slug) for slug in ("A", "a--b", "ab", "a" * 21)]
        for name, slug in (("", ""), ("  ", ""), ("x" * 101, ""), ("a\u202eb", ""), *refused):
            reply = visitor.forge(FORM, {"name": name, "slug": slug})
            assert (reply.status, visitor.entered("Name"), visitor.entered("Slug")) == (400, name, slug)
        assert "&lt;script&gt;{{7*7}}" in create(visitor, "\u202e<script>{{7*7}}").text
        assert slugs(person) == []

    def test_the_limit_of_owned_organizations_applies(self, visitor: Browser, person: Person, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "organizations_per_person", 1)
        assert create(visitor, "Acme").status == 303
        visitor.get(FORM)
        reply = create(visitor, "Birch")
        assert (reply.status, "maximum number of organizations" in text_of(reply)) == (409, True)
        assert slugs(person) == ["acme"]

"""A person's organizations: creating the first one, the default one, and deleting one by typing its name."""

import pytest

from controlplane.organizations import store as organizations
from controlplane.platform.core.settings import settings
from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.reply import Reply
from tests.support.world import Company, Person, World, table_dump

SAVE, FORM = "/organizations", "/organizations/new"
CONFIRMATION = "Name of the organization"


@pytest.fixture
def named(world: World, person: Person) -> Company:
    return world.company(name="Acme & Sons", owner=person)


def create(visitor: Browser, name: str, slug: str = "") -> Reply:
    visitor.get(FORM)
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
        reply = create(visitor, "Birch")
        assert (reply.status, "maximum number of organizations" in text_of(reply)) == (409, True)
        assert slugs(person) == ["acme"]


def active(browser: Browser, person: Person) -> str | None:
    return browser.api.get("/v1/me", person.token).data["activeOrganizationId"]


def test_only_another_organization_can_be_made_the_default(visitor: Browser, world: World, person: Person):
    assert "You don't belong to an organization yet" in text_of(visitor.get(SAVE))
    company = world.company(owner=person, name="Acme")
    shown = text_of(visitor.get(SAVE))
    assert ("Default" in shown, company.slug in shown) == (True, True)
    assert not visitor.offers("Make default")
    for name in ("Birch", "Cedar"):
        world.company(owner=person, name=name)
    visitor.get(SAVE)
    offered = [visitor.offers(f"Make default organization: {name}") for name in ("Acme", "Birch", "Cedar")]
    assert offered == [0, 1, 1]
    world.clear_default(person)
    visitor.get(SAVE)
    assert visitor.offers("Make default") == 3


def test_the_saved_organization_is_used_by_default(visitor: Browser, world: World, person: Person):
    first, second = world.company(owner=person), world.company(owner=person, name="Birch")
    assert active(visitor, person) == first.organization_id
    visitor.get(SAVE)
    reply = visitor.follow(visitor.press("Make default", near="Birch"))
    assert "Birch is saved as your default organization." in text_of(reply)
    assert active(visitor, person) == second.organization_id
    assert visitor.api.get("/v1/billing", person.token).data["organizationId"] == second.organization_id


def test_the_default_is_changed_and_shown_in_the_settings(visitor: Browser, world: World, person: Person):
    first, second = (f"{SAVE}/{world.company(owner=person).slug}/settings" for _ in range(2))
    assert "This is your default organization" in text_of(visitor.get(first))
    before = active(visitor, person)
    visitor.get(second)
    reply = visitor.press("Make this my default")
    assert (reply.status, reply.headers["location"]) == (303, f"{second}?done=default")
    assert "This is now your default organization." in text_of(visitor.follow(reply))
    assert not visitor.offers("Make this my default")
    assert active(visitor, person) not in {before, None}


@each("named", ["", "x", "org_" + "0" * 16, "ORG#x", "é", "another"])
def test_only_an_organization_of_the_user_can_be_saved(visitor: Browser, world: World, person: Person, named: str):
    organization_id = world.company().organization_id if named == "another" else named
    reply = visitor.forge(SAVE, {"organization_id": organization_id})
    assert (reply.status, "You aren't a member of this organization." in text_of(reply)) == (404, True)
    assert active(visitor, person) is None


def path(company: Company) -> str:
    return f"/organizations/{company.slug}/delete"


def uncounted() -> list[dict]:
    return [{name: it[name] for name in it if name not in {"hits", "win", "usedHour"}} for it in table_dump()]


def test_only_owners_see_the_link_to_the_deletion_page(visitor: Browser, world: World, person: Person):
    own, other = world.company(owner=person), world.company()
    world.member(other, "admin", person)
    assert f'href="{path(own)}"' in visitor.get(f"/organizations/{own.slug}/settings").text
    shown = visitor.get(f"/organizations/{other.slug}/settings")
    assert f'href="{path(other)}"' not in shown.text
    assert "Only an owner can delete an organization." in text_of(shown)
    reply = visitor.get(path(other))
    assert (reply.status, "Only owners can do this." in text_of(reply)) == (403, True)


@pytest.mark.parametrize("typed", ["Acme & Sons", "  Acme & Sons ", "slug"])
def test_entering_the_name_or_slug_deletes_the_organization(visitor: Browser, world: World, named: Company, typed: str):
    key = world.key(named)
    for _ in range(60):
        world.member(named)
    shown = text_of(visitor.get(path(named)))
    assert ("Delete Acme & Sons?" in shown, "This cannot be undone" in shown) == (True, True)
    assert visitor.entered(CONFIRMATION) == ""
    reply = visitor.press("Delete this organization", fill={CONFIRMATION: named.slug if typed == "slug" else typed})
    assert not any(it["sk"]["S"] == f"ORG#{named.organization_id}" for it in table_dump())
    text = text_of(visitor.follow(reply))
    assert "The organization is deleted." in text
    assert "You don't belong to an organization yet" in text
    assert visitor.api.get("/v1/projects", key).status == 401
    assert organizations.find_organization(named.organization_id) is None
    assert visitor.get(path(named)).status == 404


@each("typed", ["", "acme & sons", "Acme", "x" * 300, "é", "\u2028"])
def test_any_other_confirmation_changes_nothing_and_says_so(visitor: Browser, named: Company, typed: str):
    before = uncounted()
    reply = visitor.forge(path(named), {"confirmation": typed})
    assert (reply.status, "isn't the organization's name or slug" in text_of(reply)) == (400, True)
    assert uncounted() == before

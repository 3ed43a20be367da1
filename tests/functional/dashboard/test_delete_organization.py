"""GET and POST /organizations/{organizationSlug}/delete: an owner deletes an organization by typing its name."""

import pytest

from controlplane.store import organizations
from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.world import Company, Person, World, table_dump

NAME = "Name of the organization"


@pytest.fixture
def company(world: World, person: Person) -> Company:
    return world.company(name="Acme & Sons", owner=person)


def path(company: Company) -> str:
    return f"/organizations/{company.slug}/delete"


def uncounted() -> list[dict]:
    return [{name: it[name] for name in it if name not in {"hits", "win", "usedHour"}} for it in table_dump()]


class Test200:
    def test_the_deletion_page_says_what_is_deleted_and_asks_for_the_name(self, visitor: Browser, company: Company):
        reply = visitor.get(path(company))
        assert reply.status == 200
        assert "Delete Acme & Sons?" in text_of(reply)
        assert "This cannot be undone" in text_of(reply)
        assert visitor.entered(NAME) == ""

    def test_only_owners_see_the_link_to_the_deletion_page(self, visitor: Browser, world: World, person: Person):
        own, other = world.company(owner=person), world.company()
        world.member(other, "admin", person)
        assert f'href="{path(own)}"' in visitor.get(f"/organizations/{own.slug}/settings").text
        settings = visitor.get(f"/organizations/{other.slug}/settings")
        assert f'href="{path(other)}"' not in settings.text
        assert "Only an owner can delete an organization." in text_of(settings)

    @pytest.mark.parametrize("typed", ["Acme & Sons", "  Acme & Sons ", "slug"])
    def test_entering_the_name_or_slug_deletes_the_organization(self, visitor: Browser, world, company, typed):
        key = world.key(company)
        visitor.get(path(company))
        typed = company.slug if typed == "slug" else typed
        reply = visitor.follow(visitor.press("Delete this organization", fill={NAME: typed}))
        assert "The organization is deleted." in text_of(reply)
        assert "You don't belong to an organization yet" in text_of(reply)
        assert visitor.api.get("/v1/projects", key).status == 401
        assert organizations.find_organization(company.organization_id) is None
        assert visitor.get(path(company)).status == 404

    def test_an_organization_of_any_size_becomes_inaccessible_at_once(self, visitor: Browser, world, company):
        for _ in range(60):
            world.member(company)
        visitor.get(path(company))
        visitor.press("Delete this organization", fill={NAME: company.slug})
        assert not any(it["sk"]["S"] == f"ORG#{company.organization_id}" for it in table_dump())

    def test_returns_to_the_page_after_the_sign_in(self, browser: Browser, company: Company):
        assert "return_to=%2Forganizations" in browser.get(path(company)).headers["location"]


class Test400:
    @each("typed", ["", "acme & sons", "Acme", "x" * 300, "é", "\u2028"])
    def test_any_other_confirmation_changes_nothing_and_says_so(self, visitor: Browser, company: Company, typed: str):
        before = uncounted()
        reply = visitor.forge(path(company), {"confirmation": typed})
        assert reply.status == 400
        assert "isn't the organization's name or slug" in text_of(reply)
        assert uncounted() == before


class Test403:
    @pytest.mark.parametrize("role", ["admin", "member"])
    def test_requires_an_owner(self, visitor: Browser, world: World, person: Person, role):
        company = world.company()
        world.member(company, role, person)
        reply = visitor.get(path(company))
        assert reply.status == 403
        assert "Only an owner" in text_of(reply)

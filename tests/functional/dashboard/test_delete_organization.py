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


def test_only_owners_see_the_link_to_the_deletion_page(visitor: Browser, world: World, person: Person):
    own, other = world.company(owner=person), world.company()
    world.member(other, "admin", person)
    assert f'href="{path(own)}"' in visitor.get(f"/organizations/{own.slug}/settings").text
    settings = visitor.get(f"/organizations/{other.slug}/settings")
    assert f'href="{path(other)}"' not in settings.text
    assert "Only an owner can delete an organization." in text_of(settings)
    reply = visitor.get(path(other))
    assert (reply.status, "Only an owner" in text_of(reply)) == (403, True)


@pytest.mark.parametrize("typed", ["Acme & Sons", "  Acme & Sons ", "slug"])
def test_entering_the_name_or_slug_deletes_the_organization(visitor: Browser, world: World, company, typed: str):
    key = world.key(company)
    for _ in range(60):
        world.member(company)
    shown = text_of(visitor.get(path(company)))
    assert ("Delete Acme & Sons?" in shown, "This cannot be undone" in shown) == (True, True)
    assert visitor.entered(NAME) == ""
    reply = visitor.press("Delete this organization", fill={NAME: company.slug if typed == "slug" else typed})
    assert not any(it["sk"]["S"] == f"ORG#{company.organization_id}" for it in table_dump())
    text = text_of(visitor.follow(reply))
    assert "The organization is deleted." in text
    assert "You don't belong to an organization yet" in text
    assert visitor.api.get("/v1/projects", key).status == 401
    assert organizations.find_organization(company.organization_id) is None
    assert visitor.get(path(company)).status == 404


@each("typed", ["", "acme & sons", "Acme", "x" * 300, "é", "\u2028"])
def test_any_other_confirmation_changes_nothing_and_says_so(visitor: Browser, company: Company, typed: str):
    before = uncounted()
    reply = visitor.forge(path(company), {"confirmation": typed})
    assert (reply.status, "isn't the organization's name or slug" in text_of(reply)) == (400, True)
    assert uncounted() == before

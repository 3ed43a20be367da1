"""GET and POST /organizations, and an organization's settings: the default organization."""

from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.world import Person, World

SAVE = "/organizations"


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

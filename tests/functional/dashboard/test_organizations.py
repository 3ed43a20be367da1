"""GET /organizations, POST /organizations: the default organization."""

from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.world import Person, World

SAVE = "/organizations"


def active(browser: Browser, person: Person) -> str | None:
    return browser.api.get("/v1/me", person.token).data["activeOrganizationId"]


class TestShown:
    def test_shows_that_there_are_no_organizations(self, visitor: Browser):
        assert "You don't belong to an organization yet" in text_of(visitor.get(SAVE))

    def test_the_only_organization_is_the_default(self, visitor: Browser, world: World, person: Person):
        company = world.company(owner=person)
        reply = visitor.get(SAVE)
        assert "Default" in text_of(reply)
        assert company.slug in text_of(reply)
        assert not visitor.offers("Make default")

    def test_each_of_several_organizations_can_be_chosen(self, visitor: Browser, world: World, person: Person):
        for name in ("Acme", "Birch", "Cedar"):
            world.company(owner=person, name=name)
        visitor.get(SAVE)
        offered = [visitor.offers(f"Make default organization: {name}") for name in ("Acme", "Birch", "Cedar")]
        assert offered == [0, 1, 1]
        world.clear_default(person)
        visitor.get(SAVE)
        assert visitor.offers("Make default") == 3


class TestSaved:
    def test_the_saved_organization_is_used_by_default(self, visitor: Browser, world: World, person: Person):
        first, second = world.company(owner=person), world.company(owner=person, name="Birch")
        assert active(visitor, person) == first.organization_id
        visitor.get(SAVE)
        reply = visitor.follow(visitor.press("Make default", near="Birch"))
        assert "Birch is saved as your default organization." in text_of(reply)
        assert active(visitor, person) == second.organization_id
        assert visitor.api.get("/v1/billing", person.token).data["organizationId"] == second.organization_id

    @each("named", ["", "x", "org_" + "0" * 16, "ORG#x", "é"])
    def test_only_an_organization_of_the_user_can_be_saved(self, visitor: Browser, world, person, named):
        foreign = world.company()
        for organization_id in (named, foreign.organization_id):
            reply = visitor.forge(SAVE, {"organization_id": organization_id})
            assert reply.status == 404
            assert "You aren't a member of this organization." in text_of(reply)
        assert active(visitor, person) is None

"""GET and POST /organizations/{organizationSlug}/settings."""

from tests.support.browser import Browser, text_of
from tests.support.world import Person, World


def test_the_default_organization_is_changed_and_shown(visitor: Browser, world: World, person: Person):
    first, second = world.company(owner=person), world.company(owner=person)
    assert "This is your default organization" in text_of(visitor.get(f"/organizations/{first.slug}/settings"))
    path = f"/organizations/{second.slug}/settings"
    visitor.get(path)
    reply = visitor.press("Make this my default")
    assert (reply.status, reply.headers["location"]) == (303, f"{path}?done=default")
    assert "This is now your default organization." in text_of(visitor.get(reply.headers["location"]))
    assert not visitor.offers("Make this my default")
    assert visitor.api.get("/v1/me", person.token).data["activeOrganizationId"] == second.organization_id

"""From the first sign-in to an organization, the menus of the header, and the pages of an account."""

from collections.abc import Callable
from itertools import count

from tests.browser.conftest import LOOKS, Stack, Visit

_NUMBERS = count(1)


@LOOKS
class TestShell:
    def test_the_menus_lead_everywhere(self, stack: Stack, visit: Callable[..., Visit], width, scheme):
        person = visit(width, scheme)
        stack.scan()
        person.open("/account")
        person.sign_in(stack.person())
        person.look("Profile", "account")
        person.open("/account/delete")
        person.look("Delete your account?", "account-delete")
        person.open("/organizations")
        person.look("Organizations", "home")
        person.page.locator("summary", has_text="Organizations").click()
        person.look("Organizations", "switcher")
        person.page.get_by_role("link", name="Acme owner").click()
        person.look("Acme", "organization")
        person.page.locator("summary", has_text="Your account").click()
        person.look("Acme", "account-menu")
        person.page.keyboard.press("Escape")
        assert person.page.locator("details[open]").count() == 0
        if width == "phone":
            person.page.locator(".tabs-menu summary").click()
        person.page.get_by_role("link", name="Settings", exact=True).click()
        person.look("Settings", "organization-settings")
        person.open("/organizations/acme/nope")
        person.look("There is no such page", "no-page")

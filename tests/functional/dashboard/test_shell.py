"""The header of every page: the organization switcher, the person's menu, and the areas of an organization."""

import re

import pytest

from controlplane.platform.core.errors import RouteNotFound
from dashboard import navigation
from tests.support.browser import Browser, text_of
from tests.support.cold_start import loaded_by
from tests.support.operations import operations
from tests.support.world import Company, Person, World


@pytest.fixture
def company(world: World, person: Person) -> Company:
    return world.company(owner=person, name="Acme")


def header(browser: Browser, path: str) -> str:
    return browser.get(path).text.partition("<main")[0]


class TestSwitcher:
    def test_lists_all_organizations_on_pages_of_one(self, visitor: Browser, person, company, world):
        other = world.company(owner=person, name="Birch")
        for path in ("", "/repositories"):
            shown = header(visitor, f"/organizations/{company.slug}{path}")
            assert f'href="/organizations/{company.slug}" aria-current="true"' in shown
            assert f'href="/organizations/{other.slug}"' in shown

    def test_is_not_shown_to_a_signed_out_user(self, browser: Browser):
        assert "<details" not in header(browser, "/")


class TestAreas:
    def test_each_area_that_is_linked_exists_and_marks_itself(self, visitor: Browser, company: Company):
        shown = header(visitor, f"/organizations/{company.slug}").partition('<nav class="tabs"')[2]
        linked = re.findall(r'<a href="([^"]+)"', shown)
        assert f"/organizations/{company.slug}/repositories" in linked
        for path in linked:
            assert f'href="{path}" aria-current="page"' in header(visitor, path)

    def test_each_page_of_an_account_is_linked(self, visitor: Browser):
        for tab in navigation.list_account_tabs():
            assert f'href="{tab.path}" aria-current="page"' in header(visitor, tab.path)


class TestErrors:
    def test_an_unknown_address_is_a_page_in_a_browser_and_in_the_apis_format_for_others(
        self, visitor: Browser, company: Company
    ):
        for path in ("/nope", "/account/nope", f"/organizations/{company.slug}/nope", "/organizations/nope"):
            reply = visitor.get(path, Accept="text/html,*/*;q=0.8")
            assert (reply.status, "There is no such page" in text_of(reply)) == (404, True)
            assert visitor.offers("Sign out")
        for path in ("/nope", "/account/nope", f"/organizations/{company.slug}/nope"):
            for accepted in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
                reply = visitor.get(path, **accepted)
                assert (reply.status, reply.code) == (404, "NOT_FOUND")
                assert reply.error["message"] == RouteNotFound.message

    def test_an_unknown_address_reads_nothing_for_a_signed_out_user(self, browser: Browser):
        reply = browser.get("/nope", Accept="text/html")
        assert (reply.status, "<details" in reply.text) == (404, False)

    def test_an_expired_form_says_so_and_keeps_the_menus(self, visitor: Browser):
        reply = visitor.forge("/organizations", {"form_token": "x"})
        assert (reply.status, "This form has expired" in text_of(reply)) == (403, True)
        assert visitor.offers("Sign out")

    def test_each_address_of_a_form_leads_a_browser_to_a_page(self, visitor: Browser):
        pages = {operation.path for operation in operations() if operation.method == "GET"}
        forms = {it.path for it in operations() if it.requires_session is not None and it.method == "POST"} - pages
        for form in {re.sub(r"\{\w+\}", "x", path) for path in forms if not path.startswith("/invitations/")}:
            reply = visitor.get(f"{form}?x=1", Accept="text/html")
            assert (reply.status, reply.headers.get("location")) == (303, form.rpartition("/")[0] or "/"), form
        # The page of an invitation says that there is no such invitation.
        assert visitor.get("/invitations/accept", Accept="text/html").status == 200

    def test_crawlers_get_a_file_and_browsers_an_icon(self, browser: Browser):
        robots, icon = browser.get("/robots.txt"), browser.get("/favicon.ico")
        assert robots.status == icon.status == 200
        assert "Disallow: /\n" in robots.text
        assert icon.headers["content-type"] == "image/svg+xml"
        assert icon.text.startswith("<svg")


def test_sign_in_libraries_are_imported_at_the_first_sign_in():
    assert loaded_by("dashboard.app", {"authlib", "cryptography", "joserfc", "requests"}) == set()

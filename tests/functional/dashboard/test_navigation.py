"""The header and the links of every page: the organization switcher, the areas, errors, and where links lead."""

import re
from html import unescape
from urllib.parse import urljoin

import pytest

from controlplane.platform.core.errors import RouteNotFound
from controlplane.platform.core.urls import public_base_url
from dashboard import navigation
from tests.functional.projects.builders import make_project
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser, text_of
from tests.support.cold_start import loaded_by
from tests.support.operations import operations, operations_at


@pytest.fixture
def company(world, person):
    return world.company(owner=person, name="Acme")


def header(browser: Browser, path: str) -> str:
    return browser.get(path).text.partition("<main")[0]


class TestSwitcher:
    def test_lists_all_organizations_on_pages_of_one(self, visitor, person, company, world):
        other = world.company(owner=person, name="Birch")
        for path in ("", "/repositories"):
            shown = header(visitor, f"/organizations/{company.slug}{path}")
            assert f'href="/organizations/{company.slug}" aria-current="true"' in shown
            assert f'href="/organizations/{other.slug}"' in shown


class TestAreas:
    def test_each_area_that_is_linked_exists_and_marks_itself(self, visitor, company):
        shown = header(visitor, f"/organizations/{company.slug}").partition('<nav class="tabs"')[2]
        linked = re.findall(r'<a href="([^"]+)"', shown)
        assert f"/organizations/{company.slug}/repositories" in linked
        for path in (*linked, *(tab.path for tab in navigation.list_account_tabs())):
            assert f'href="{path}" aria-current="page"' in header(visitor, path)


class TestErrors:
    def test_an_unknown_address_is_a_page_in_a_browser_and_in_the_apis_format_for_others(self, visitor, company):
        for path in ("/nope", "/account/nope", f"/organizations/{company.slug}/nope", "/organizations/nope"):
            reply = visitor.get(path, Accept="text/html,*/*;q=0.8")
            assert (reply.status, "There is no such page" in text_of(reply)) == (404, True)
            assert visitor.offers("Sign out")
        for path in ("/nope", "/account/nope", f"/organizations/{company.slug}/nope"):
            for accepted in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
                reply = visitor.get(path, **accepted)
                assert (reply.status, reply.code) == (404, "NOT_FOUND")
                assert reply.error["message"] == RouteNotFound.message
        reply = visitor.forge("/organizations", {"form_token": "x"})
        assert (reply.status, "This form has expired" in text_of(reply)) == (403, True)
        assert visitor.offers("Sign out")
        reply = Browser(visitor.api).get("/nope", Accept="text/html")
        assert (reply.status, "<details" in reply.text) == (404, False)

    def test_each_address_of_a_form_leads_a_browser_to_a_page(self, visitor):
        pages = {operation.path for operation in operations() if operation.method == "GET"}
        forms = {it.path for it in operations() if it.requires_session is not None and it.method == "POST"} - pages
        for form in {re.sub(r"\{\w+\}", "x", path) for path in forms if not path.startswith("/invitations/")}:
            reply = visitor.get(f"{form}?x=1", Accept="text/html")
            assert (reply.status, reply.headers.get("location")) == (303, form.rpartition("/")[0] or "/"), form
        # The page of an invitation says that there is no such invitation.
        assert visitor.get("/invitations/accept", Accept="text/html").status == 200

    def test_crawlers_get_a_file_and_browsers_an_icon(self, browser):
        robots, icon = browser.get("/robots.txt"), browser.get("/favicon.ico")
        assert robots.status == icon.status == 200
        assert "Disallow: /\n" in robots.text
        assert icon.headers["content-type"] == "image/svg+xml"
        assert icon.text.startswith("<svg")


def test_sign_in_libraries_are_imported_at_the_first_sign_in():
    assert loaded_by("dashboard.app", {"authlib", "cryptography", "joserfc", "requests"}) == set()


def crawl(browser: Browser, start: str = "/") -> set[str]:
    """Follows every link to this service and checks that it is a page, and that each form has a route.

    Returns the paths.
    """
    waiting, seen = [start], {start}
    while waiting:
        target = waiting.pop()
        reply = browser.get(target)
        assert reply.status == 200, target
        for action in re.findall(r'<form [^>]*method="post" action="([^"?]*)', reply.text):
            assert "POST" in {operation.method for operation in operations_at(unescape(action))}, action
        for link in re.findall(r'<a [^>]*href="([^"]*)"', reply.text):
            path = urljoin(target, unescape(link).removeprefix(public_base_url())).partition("#")[0]
            # The reference's own links are checked with its files.
            if path.startswith("/") and path not in seen and not target.startswith("/docs"):
                seen.add(path)
                waiting.append(path)
    return seen


def test_every_link_of_a_person_without_an_organization_leads_to_a_page(visitor):
    seen = crawl(visitor)
    assert {"/organizations", "/organizations/new", "/invitations", "/device", "/docs"} <= seen


def test_every_link_of_a_member_leads_to_a_page(visitor, world, person):
    company = world.company(owner=person)
    project = make_project(company)
    world.invitation(world.company(), person.email)
    repository = world.connected_repository(company)
    scan = make_scan(repository, issues=[make_issue(number) for number in range(1, 6)])
    own = f"/organizations/{company.slug}"
    shop = f"{own}/projects/{project.slug}"
    pages = {own, shop, f"{own}/projects/{repository.name}", f"{own}/scans/{scan.scan_id}", "/invitations/blocked"}
    pages |= {f"{own}/{page}" for page in ("settings", "delete", "keys", "members", "billing", "projects/new")}
    pages |= {f"{shop}/{page}" for page in ("consent", "settings", "vendors", "delete")}
    assert pages <= crawl(visitor)


def test_messages_send_callers_to_places_that_exist(api, visitor, world):
    nowhere = world.person()
    message = api.get("/v1/projects", nowhere.token).error["message"]
    (page,) = re.findall(r"https://[^/]+(/\S+)", message)
    assert visitor.get(page).status == 200
    assert api.post("/v1/organizations", nowhere.token, json_body={"name": "Acme"}).status == 201
    assert api.get("/v1/projects", nowhere.token).status == 200
    several = world.company().owner
    saved = world.company(owner=several)
    world.clear_default(several)
    (detail,) = api.get("/v1/projects", several.token).error["details"]
    method, path = re.findall(r"(PUT) (\S+)\.", detail["message"])[0]
    assert api.call(method, path, several.token, json_body={"organizationId": saved.organization_id}).status == 200
    assert api.get("/v1/projects", several.token).status == 200

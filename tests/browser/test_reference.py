"""The reference in a browser: Redoc renders the document under our content security policy."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from controlplane.platform.http import deprecations
from scripts.reference.calls import CALLS, COMMANDS
from scripts.reference.guides import guides
from tests.browser.conftest import LOOKS, WIDTHS, Visit

TITLE = "Assent control plane"


def test_every_operation_is_rendered(visit: Callable[..., Visit]):
    person = visit()
    person.open("/docs/reference")
    person.page.get_by_role("heading", name="Create a project").wait_for()
    for name in ("Roll an API key", "Start a scan", "List inbox items"):
        expect(person.page.get_by_role("heading", name=name)).to_have_count(1)
    for form in ("curl", "Command line", "Python"):
        expect(person.page.get_by_role("tab", name=form, exact=True)).to_have_count(len({*CALLS, *COMMANDS}))
    # Redoc puts h5 headings below h2; its markup isn't ours to change.
    person.look(TITLE, "reference", except_for={"heading-order"})
    person.page.set_viewport_size(WIDTHS["phone"])
    assert person.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("width", ["desktop", "phone"])
class TestEachWidth:
    def test_the_page_of_a_rule_is_found_from_the_list(self, visit: Callable[..., Visit], width: str):
        person = visit(width)
        person.open("/docs/rules")
        person.look("Rules", "rules")
        person.page.get_by_role("link", name="personal-data-in-tracking-address").click()
        person.look("A URL that is sent to a third party contains personal data", "rule")

    def test_without_scripts_every_operation_and_guide_is_a_link(self, visit: Callable[..., Visit], width: str):
        person = visit(width, scripts=False)
        person.open("/docs")
        person.page.get_by_role("heading", name=TITLE).wait_for()
        assert person.page.get_by_role("searchbox").count() == 0
        person.page.get_by_role("link", name="Create a project", exact=True).click()
        person.page.get_by_text("POST /v1/projects").wait_for()
        person.page.go_back()
        person.page.get_by_role("link", name="Scan every pull request", exact=True).click()
        person.page.get_by_role("heading", name="With the service").wait_for()


@LOOKS
def test_the_start_and_every_guide_are_pages(visit: Callable[..., Visit], width: str, scheme: str):
    person = visit(width, scheme)
    person.open("/docs")
    person.look(TITLE, "docs")
    for guide in guides():
        person.open(f"/docs/{guide.name}")
        person.look(guide.title, guide.name)


def test_the_search_finds_guides_and_operations(visit: Callable[..., Visit]):
    person = visit()
    person.open("/docs")
    person.page.get_by_label("Search guides and operations").fill("webhook python")
    person.page.get_by_role("status").get_by_text("1 result").wait_for()
    person.page.get_by_role("link", name="Receive webhooks", exact=True).wait_for()
    assert person.page.get_by_role("link", name="Create a project").count() == 0
    person.look(TITLE, "docs-search")


def test_the_search_of_the_reference_finds_an_operation(visit: Callable[..., Visit]):
    person = visit()
    person.open("/docs/reference")
    box = person.page.get_by_placeholder("Search...")
    box.wait_for()
    box.fill("roll")
    person.page.get_by_role("menuitem", name="Roll an API key").first.wait_for()


def test_the_link_header_of_a_deprecation_leads_to_its_section(visit: Callable[..., Visit]):
    person = visit()
    person.open(deprecations.SECTION)
    person.page.get_by_role("heading", name="Deprecations").wait_for()
    anchor = deprecations.SECTION.partition("#")[2]
    person.page.locator(f'[id="{anchor}"], [data-section-id="{anchor}"]').first.wait_for(state="attached")


def test_the_dashboard_and_the_reference_link_to_each_other(visit: Callable[..., Visit]):
    person = visit()
    person.open("/")
    person.page.get_by_role("link", name="API reference").click()
    person.page.get_by_role("heading", name=TITLE).wait_for()
    person.page.get_by_role("link", name="Sign in").click()
    person.page.get_by_role("heading", name="Find the trackers that run before consent").wait_for()

"""The reference in a browser: Redoc renders the document under our content security policy."""

from collections.abc import Callable

import pytest

from controlplane.platform.http import deprecations
from scripts.reference.calls import CALLS, COMMANDS
from tests.browser.conftest import Visit

TITLE = "Assent control plane"


@pytest.mark.parametrize("width", ["desktop", "phone"])
class TestEachWidth:
    def test_every_operation_is_rendered(self, visit: Callable[..., Visit], width: str):
        person = visit(width)
        person.open("/docs")
        person.page.get_by_role("heading", name="Create a project").wait_for()
        for name in ("Roll an API key", "Start a scan", "List inbox items"):
            assert person.page.get_by_role("heading", name=name).count() == 1
        for form in ("curl", "Command line", "Python"):
            assert person.page.get_by_role("tab", name=form, exact=True).count() == len({*CALLS, *COMMANDS})
        # Redoc puts h5 headings below h2; its markup isn't ours to change.
        person.look(TITLE, "reference", except_for={"heading-order"})

    def test_the_page_of_a_rule_is_found_from_the_list(self, visit: Callable[..., Visit], width: str):
        person = visit(width)
        person.open("/docs/rules")
        person.look("Rules", "rules")
        person.page.get_by_role("link", name="personal-data-in-tracking-address").click()
        person.look("A URL that is sent to a third party contains personal data", "rule")

    def test_without_scripts_every_operation_is_a_link(self, visit: Callable[..., Visit], width: str):
        person = visit(width, scripts=False)
        person.open("/docs")
        person.page.get_by_role("heading", name=TITLE).wait_for()
        person.page.get_by_role("link", name="Create a project", exact=True).click()
        person.page.get_by_text("POST /v1/projects").wait_for()


def test_the_search_finds_an_operation(visit: Callable[..., Visit]):
    person = visit()
    person.open("/docs")
    box = person.page.get_by_placeholder("Search...")
    box.wait_for()
    box.fill("roll")
    person.page.get_by_role("menuitem", name="Roll an API key").first.wait_for()


def test_the_link_header_of_a_deprecation_leads_to_its_section(visit: Callable[..., Visit]):
    person = visit()
    person.open(deprecations.SECTION)
    person.page.get_by_role("heading", name="Deprecations").wait_for()
    anchor = deprecations.SECTION.partition("#")[2]
    assert person.page.locator(f'[id="{anchor}"], [data-section-id="{anchor}"]').count() > 0


def test_the_dashboard_and_the_reference_link_to_each_other(visit: Callable[..., Visit]):
    person = visit()
    person.open("/")
    person.page.get_by_role("link", name="API reference").click()
    person.page.get_by_role("heading", name="Create a project").wait_for()
    person.page.get_by_role("link", name="Sign in").click()
    person.page.get_by_role("heading", name="Find the trackers that run before consent").wait_for()

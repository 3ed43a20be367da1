"""The reference in a browser: at every width and in both colour schemes, without scripts, by keyboard, on paper."""

from collections.abc import Callable

import pytest

from tests.browser.conftest import Stack, Visit

LOOKS = pytest.mark.parametrize(
    ("width", "scheme"), [("desktop", "light"), ("desktop", "dark"), ("phone", "light"), ("phone", "dark")]
)
TITLE = "Assent control plane"


def is_in_sight(person: Visit, selector: str) -> bool:
    box = person.page.locator(selector).bounding_box()
    height = person.page.viewport_size["height"]
    return box is not None and -1 <= box["y"] < height


@LOOKS
class TestEachLook:
    def test_reads_well_with_all_of_it_unfolded(self, visit: Callable[..., Visit], width: str, scheme: str):
        person = visit(width, scheme)
        person.open("/docs")
        person.page.get_by_role("heading", name=TITLE).wait_for()
        person.page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
        person.look(TITLE, "reference-unfolded")

    def test_leads_from_the_contents_to_an_operation(self, visit: Callable[..., Visit], width: str, scheme: str):
        person = visit(width, scheme)
        person.open("/docs")
        if width == "phone":
            person.page.get_by_role("link", name="Contents").click()
        contents = person.page.get_by_role("navigation", name="Contents")
        contents.get_by_role("link", name="Create a project POST").click()
        person.page.wait_for_url("**/docs#createProject")
        person.page.wait_for_function("document.getElementById('createProject').getBoundingClientRect().top < 200")
        assert is_in_sight(person, "#createProject h3")
        assert contents.is_visible() is (width == "desktop")
        if width == "desktop":
            current = contents.locator("[aria-current]")
            current.get_by_text("Create a project").wait_for()


class TestWithScripts:
    def test_an_example_is_copied(self, stack: Stack, visit: Callable[..., Visit]):
        person = visit()
        person.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=stack.base_url)
        person.open("/docs#listRegions")
        person.press("Copy: Request, List regions")
        person.page.get_by_role("status").get_by_text("Copied").wait_for(state="attached")
        copied = person.page.evaluate("navigator.clipboard.readText()")
        assert copied == f"curl {stack.base_url}/v1/regions"

    def test_the_contents_are_filtered_by_name_path_and_id(self, visit: Callable[..., Visit]):
        person = visit()
        person.open("/docs")
        person.page.get_by_role("heading", name=TITLE).wait_for()
        person.page.keyboard.press("/")
        box = person.page.get_by_role("searchbox", name="Filter the contents")
        shown = person.page.locator(".contents li:visible")
        for text, name in (("roll", "Roll an API key"), ("websites delete", "website"), ("decideVendor", "vendor")):
            box.fill(text)
            assert shown.count() == 1
            assert name in shown.inner_text()
        box.fill("nothing of the kind")
        assert shown.count() == 0
        person.page.get_by_text("Nothing is called that.").wait_for()
        box.press("Escape")
        assert shown.count() > 40
        box.fill("roll")
        box.press("Enter")
        person.page.wait_for_url("**/docs#rollApiKey")

    def test_closing_the_contents_of_a_phone_leads_back(self, visit: Callable[..., Visit]):
        person = visit("phone")
        person.open("/docs#rollApiKey")
        person.page.get_by_role("link", name="Contents").click()
        person.look(TITLE, "reference-contents")
        person.page.get_by_role("link", name="Close").click()
        person.page.wait_for_url("**/docs#rollApiKey")
        assert is_in_sight(person, "#rollApiKey h3")


class TestWithoutScripts:
    @pytest.mark.parametrize("width", ["desktop", "phone"])
    def test_all_of_it_can_be_read_and_reached(self, visit: Callable[..., Visit], width: str):
        person = visit(width, scripts=False)
        person.open("/docs")
        assert person.page.get_by_role("button").count() == person.page.get_by_role("searchbox").count() == 0
        if width == "phone":
            person.page.get_by_role("link", name="Contents").click()
            assert is_in_sight(person, ".contents .group >> nth=0")
        person.page.get_by_role("navigation").get_by_role("link", name="Create a project POST").click()
        assert is_in_sight(person, "#createProject h3")
        assert person.page.get_by_role("navigation").is_visible() is (width == "desktop")
        folded = person.page.locator("#createProject .about details").first
        folded.locator("summary").click()
        assert folded.locator(".fields").first.is_visible()

    def test_a_phone_s_contents_close(self, visit: Callable[..., Visit]):
        person = visit("phone", scripts=False)
        person.open("/docs#contents")
        person.page.get_by_role("link", name="Close").click()
        assert not person.page.get_by_role("navigation").is_visible()
        person.page.get_by_role("heading", name=TITLE).wait_for()


class TestByKeyboard:
    def test_the_first_stop_skips_the_contents(self, visit: Callable[..., Visit]):
        person = visit()
        person.open("/docs")
        person.page.get_by_role("heading", name=TITLE).wait_for()
        person.page.keyboard.press("Tab")
        assert person.page.evaluate("document.activeElement.innerText.trim()") == "Skip to the content"
        person.page.keyboard.press("Enter")
        person.page.wait_for_function("document.activeElement.id === 'content'")
        person.page.keyboard.press("Tab")
        assert person.page.evaluate("document.querySelector('main').contains(document.activeElement)")
        assert person.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


class TestElsewhere:
    def test_on_paper_nothing_is_folded_and_no_contents_are_printed(self, visit: Callable[..., Visit]):
        person = visit(scripts=False)
        person.open("/docs")
        person.page.emulate_media(media="print")
        assert not person.page.get_by_role("navigation").is_visible()
        assert person.page.locator("#createProject .about details .fields").first.is_visible()

    def test_a_large_text_does_not_break_the_page(self, visit: Callable[..., Visit]):
        person = visit("phone")
        person.open("/docs")
        person.page.get_by_role("heading", name=TITLE).wait_for()
        person.page.evaluate("document.documentElement.style.fontSize = '200%'")
        assert person.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    def test_the_pages_lead_to_it_and_it_leads_to_them(self, visit: Callable[..., Visit]):
        person = visit()
        person.open("/")
        person.page.get_by_role("link", name="API reference").click()
        person.page.get_by_role("heading", name=TITLE).wait_for()
        person.page.get_by_role("link", name="Sign in").click()
        person.page.get_by_role("heading", name="Consent, under control").wait_for()

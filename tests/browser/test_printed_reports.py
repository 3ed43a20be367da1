"""Both reports printed to PDF: nothing is wider than the page, and the pages hold all of it."""

import math
import re
from collections.abc import Callable

from tests.browser.conftest import Stack, Visit

# A4 within the margins of print.css, in CSS pixels.
_AREA = {"width": 687, "height": 1001}
_CUT = """[...document.querySelectorAll("main, main *:not(.hidden)")].filter(it => {
    const box = it.getBoundingClientRect();
    const clips = getComputedStyle(it).overflowX !== "visible" && it.scrollWidth > it.clientWidth;
    return it.checkVisibility() && (clips || box.left < 0 || box.right > innerWidth);
}).map(it => it.outerHTML)"""
# Paths and lines of code can be this long. The demo's are short.
_LENGTHEN = """document.querySelectorAll(".report bdi, .report .line").forEach(it => it.append("long".repeat(80)))"""
_LAST = """(report => {
    const last = [...report.querySelectorAll("p, li, td")].filter(it => it.checkVisibility()).at(-1);
    return [last.innerText.trim(), last.getBoundingClientRect().bottom <= document.documentElement.scrollHeight];
})(document.querySelector(".report"))"""


def test_both_reports_are_printed_whole(stack: Stack, visit: Callable[..., Visit]):
    scan = stack.scan()
    person = visit()
    slug = stack.credentials["organizations"][0]["slug"]
    person.open(f"/organizations/{slug}/scans/{scan['id']}/report")
    person.sign_in(stack.person())
    _check(person, "Report on storefront")
    person.page.get_by_role("link", name="Acme Shop").click()
    person.page.get_by_role("link", name="Report", exact=True).click()
    assert _check(person, "Report on Acme Shop").endswith("Open findings and vendors are those of today.")


def _check(person: Visit, heading: str) -> str:
    """Prints the report, and returns its last text."""
    page = person.page
    person.arrive(heading)
    page.set_viewport_size(_AREA)
    page.emulate_media(media="print")
    page.evaluate(_LENGTHEN)
    assert page.evaluate(_CUT) == []
    text, is_inside = page.evaluate(_LAST)
    assert is_inside
    needed = math.ceil(page.evaluate("document.querySelector('.report').scrollHeight") / _AREA["height"])
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= needed > 0
    page.emulate_media(media="screen")
    return text

"""The inbox: findings are decided on by keyboard and without scripts. No page violates axe's rules."""

from collections.abc import Callable

from tests.browser.conftest import LOOKS, Stack, Visit


def slug(stack: Stack) -> str:
    owner = stack.person()
    found = stack.call("/v1/organizations", token=owner["accessToken"])[1]["data"]
    return next(it["organizationSlug"] for it in found if it["organizationId"] == owner["organizationId"])


@LOOKS
def test_findings_are_decided_on_by_keyboard_and_undone(stack: Stack, visit: Callable[..., Visit], width, scheme):
    stack.scan()
    person = visit(width, scheme)
    inbox = f"/organizations/{slug(stack)}/inbox"
    person.open(inbox)
    person.sign_in(stack.person())
    person.look("Inbox", "inbox")
    keys, rows = person.page.keyboard, person.page.locator(".findings > li")
    titles = [rows.nth(number).get_by_role("link").inner_text() for number in range(2)]
    for key in "jxjx":
        keys.press(key)
    person.page.get_by_text("2 selected").wait_for()
    keys.press("?")
    person.look("Inbox", "inbox-shortcuts")
    keys.press("d")
    person.page.get_by_text("2 findings are dismissed.").wait_for()
    person.look("Inbox", "inbox-decided")
    keys.press("u")
    person.page.get_by_text("2 findings are restored.").wait_for()
    person.arrive("Inbox")
    keys.press("/")
    keys.type("no such finding")
    keys.press("Enter")
    person.page.get_by_role("heading", name="No match").wait_for()
    person.look("Inbox", "inbox-no-match")
    person.open(f"{inbox}?source=code-audit&priority=P0")
    keys.press("j")
    title = person.page.locator(".findings h3 a").first.inner_text()
    keys.press("e")
    person.page.get_by_role("heading", name="Evidence").wait_for()
    assert person.page.evaluate("document.activeElement.id") in ("evidence", "")
    person.look(title, "finding")
    keys.press("a")
    person.page.get_by_text("The finding is accepted.").wait_for()
    person.look(title, "finding-accepted")
    keys.press("u")
    person.page.get_by_text("The finding has its former status again.").wait_for()
    assert len(titles) == 2


def test_findings_are_decided_on_without_scripts(stack: Stack, visit: Callable[..., Visit]):
    stack.scan()
    person = visit(scripts=False)
    person.open(f"/organizations/{slug(stack)}/inbox")
    person.sign_in(stack.person())
    person.page.locator(".findings input").first.check()
    person.press("Resolve")
    person.page.get_by_text("1 finding is resolved.").wait_for()
    person.press("Undo")
    person.page.get_by_text("1 finding is restored.").wait_for()

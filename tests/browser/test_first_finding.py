"""A newcomer: from signing up to the first finding that can be read, with every click and every typed field counted."""

from collections.abc import Callable

from playwright.sync_api import Locator

from local.github.setup import DEMO_NAME, DEMO_OWNER
from tests.browser.conftest import LOOKS, Stack, Visit

MOST_CLICKS, MOST_FIELDS = 7, 2
REPOSITORY = f"{DEMO_OWNER}/{DEMO_NAME}"


class Newcomer:
    """A person without an account. Counts what the person clicks and types."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.page = visit, visit.page
        self.clicks = self.fields = 0

    def click(self, role: str, name: str) -> None:
        self.clicks += 1
        self._get(role, name).click()

    def type(self, label: str, text: str) -> None:
        self.fields += 1
        self.page.get_by_label(label, exact=True).fill(text)

    def _get(self, role: str, name: str) -> Locator:
        return self.page.get_by_role(role, name=name).first  # type: ignore[arg-type]

    def reach_the_first_finding(self, email: str) -> None:
        """Signs up, connects GitHub, and scans the demo repository. Looks at each page on the way."""
        look = self.visit.look
        self.visit.open("/")
        self.click("link", "Sign in")
        self.click("button", "Create an account")
        look("Create an account", "sign-up")
        self.type("Email", email)
        self.type("Password", "correct horse battery")
        self.click("button", "Create an account")
        look("Welcome, ", "welcome")
        self.click("button", "Connect GitHub")
        self.click("link", f"Install in {DEMO_OWNER}")
        look(f"Scan {REPOSITORY}", "repository-new")
        assert self.page.get_by_label("Website").input_value() == f"{DEMO_OWNER}.example.com"
        self.click("button", "Start the first scan")
        self.page.locator(".scan-findings li").first.wait_for()
        look(f"Scan of {DEMO_NAME}", "scan-first")
        assert self.page.get_by_text("The scan is requested.").count() == 0


@LOOKS
def test_a_newcomer_reaches_the_first_finding(stack: Stack, visit: Callable[..., Visit], width, scheme):
    newcomer = Newcomer(visit(width, scheme))
    newcomer.reach_the_first_finding(f"new-{width}@bakery.example")
    assert (newcomer.clicks, newcomer.fields) <= (MOST_CLICKS, MOST_FIELDS)
    newcomer.visit.open("/")
    newcomer.visit.look(f"new-{width}", "overview-first")

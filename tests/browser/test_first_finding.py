"""A newcomer: from signing up to the first finding that can be read, with every click and every typed field counted."""

from collections.abc import Callable
from typing import Literal

from local.github import setup
from local.github.repositories import Repositories
from tests.browser.conftest import LOOKS, Stack, Visit

MOST_CLICKS, MOST_FIELDS = 6, 2
NAME = "storefront"


class Newcomer:
    """A person without an account. Counts what the person clicks and types."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.page = visit, visit.page
        self.clicks = self.fields = 0

    def click(self, role: Literal["button", "link"], name: str) -> None:
        self.clicks += 1
        self.page.get_by_role(role, name=name).first.click()

    def type(self, label: str, text: str) -> None:
        self.fields += 1
        self.page.get_by_label(label, exact=True).fill(text)

    def reach_the_first_finding(self, email: str, owner: str) -> None:
        """Signs up, connects GitHub, and scans the owner's repository. Looks at each page on the way."""
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
        self.click("link", f"Install in {owner}")
        look(f"Scan {owner}/{NAME}", "repository-new")
        assert self.page.get_by_label("Website").input_value() == f"{owner}.example.com"
        self.click("button", "Start the first scan")
        self.page.locator(".scan-findings li").first.wait_for()
        look(f"Scan of {NAME}", "scan-first")
        assert self.page.get_by_text("The scan is requested.").count() == 0


@LOOKS
def test_a_newcomer_reaches_the_first_finding(stack: Stack, visit: Callable[..., Visit], width, scheme):
    owner = f"bakery-{width}"
    repositories = Repositories(stack.directory / setup.FOLDER / "repositories")
    repositories.create(owner, NAME, setup.DEMO_FILES, setup.DEMO_BRANCH)
    newcomer = Newcomer(visit(width, scheme))
    newcomer.reach_the_first_finding(f"new-{width}@bakery.example", owner)
    assert newcomer.clicks <= MOST_CLICKS
    assert newcomer.fields <= MOST_FIELDS
    newcomer.visit.open("/")
    newcomer.visit.look(f"new-{width}", "overview-first")

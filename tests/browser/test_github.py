"""A person connects GitHub, and follows a pull request from there to its scan and back."""

import time
from collections.abc import Callable
from typing import Any

from local.github import setup
from local.github.repositories import Repositories
from tests.browser.conftest import Stack, Visit

OWNER, NAME = "maple-shop", "storefront"


def connect(person: Visit) -> None:
    """Installs the App from the page of the organization's repositories, and scans the repository for a new project."""
    person.page.get_by_role("link", name="Repositories", exact=True).click()
    person.page.get_by_role("link", name="Connect GitHub").click()
    person.page.get_by_role("link", name=f"Install in {OWNER}").click()
    person.look(f"Scan {OWNER}/{NAME}", "github")
    assert person.page.get_by_label("Scan pull requests").is_checked()
    person.press("Start the first scan")
    person.page.locator(".scan-findings li").first.wait_for()
    person.page.get_by_role("link", name="Repositories", exact=True).click()
    person.page.get_by_role("link", name=f"{OWNER}/{NAME}").click()
    person.page.get_by_role("button", name="Start scan").wait_for()
    person.look(f"{OWNER}/{NAME}", "repository-linked")


def wait_for_scan(stack: Stack) -> None:
    """Waits until the pull request's scan is completed."""
    owner, deadline = stack.person(), time.monotonic() + 60
    target = f"/v1/code-audit/scans?organizationId={owner['organizationId']}&status=completed"
    found: list[dict[str, Any]] = []
    while not any(it["pullRequestNumber"] == 1 for it in found):
        assert time.monotonic() < deadline, f"the pull request wasn't scanned: {found}"
        time.sleep(0.5)
        found = stack.call(target, token=owner["accessToken"])[1]["data"]


def test_a_person_connects_github_and_sees_the_scan_of_a_pull_request(stack: Stack, visit: Callable[..., Visit]):
    repositories = Repositories(stack.directory / setup.FOLDER / "repositories")
    repositories.create(OWNER, NAME, setup.DEMO_FILES, setup.DEMO_BRANCH)
    person = visit()
    slug = stack.credentials["organizations"][0]["slug"]
    person.open(f"/organizations/{slug}")
    person.sign_in(stack.person())
    connect(person)

    host = person.context.new_page()
    host.goto(f"{stack.base_url}{setup.PREFIX}/{OWNER}/{NAME}/pulls")
    host.get_by_role("button", name="Open").click()
    host.get_by_role("heading", name="#1 A change").wait_for()
    wait_for_scan(stack)
    person.open(f"/organizations/{slug}/scans")
    person.page.get_by_role("row", name="Pull request #1").wait_for()
    person.look("Scans", "scans-pull-request")
    # The report may come after the scan.
    reported = host.get_by_text("1 new finding"), host.get_by_role("heading", name="completed failure")
    deadline = time.monotonic() + 60
    while not all(it.count() for it in reported):
        assert time.monotonic() < deadline, host.content()
        host.reload()

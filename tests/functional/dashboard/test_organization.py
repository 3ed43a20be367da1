"""GET /organizations/{organizationSlug}: what is left to set up, the findings, the latest scans and projects."""

import re

import pytest

from controlplane.findings import inbox, intake
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.scans.items import ScanItem
from controlplane.scans.reads import Inventory, UsedVendor, VendorPackage, stored_leg
from dashboard.organizations.overview import CONSENT_LIBRARY
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser, text_of
from tests.support.populated_organization import detection
from tests.support.table import PREPARED
from tests.support.world import Company, Person, World

PACKAGE = VendorPackage("@c15t/react", "^2.2", "package.json")


@pytest.fixture
def company(world: World, person: Person) -> Company:
    return world.company("enterprise", owner=person)


def create(company: Company, *names: str) -> None:
    for name in names:
        projects.create_project(company.organization_id, name, region="eu-central", addresses=[], branding="assent")


def install_consent(scan: ScanItem, packages: tuple[VendorPackage, ...] = (PACKAGE,)) -> None:
    """Stores an inventory with the consent library for the scan."""
    library = UsedVendor(id=CONSENT_LIBRARY, name="c15t", category="consent", packages=packages)
    table.put(stored_leg(scan.scan_id, Inventory(files=1, vendors=(library,))), PREPARED)


def links(browser: Browser) -> list[str]:
    """Returns the paths that the last page links to, in order."""
    assert browser.last is not None
    return re.findall(r'href="(/[^"]*)"', browser.last.text)


def projects_in(browser: Browser) -> set[str]:
    """Returns the pages of projects that the last page links to, without those below them."""
    return {path for path in links(browser) if re.search(r"/projects/shop[^/]*$|/projects/blog$", path)}


def home(company: Company) -> str:
    return f"/organizations/{company.slug}"


def test_every_project_is_reached_by_links_from_the_home_page(visitor: Browser, company: Company):
    create(company, "Shop", "Blog")
    own = home(company)
    for page in ("/", "/organizations"):
        visitor.get(page)
        assert own in links(visitor)
    assert visitor.get(own).status == 200
    pages = [f"{own}/projects/{slug}" for slug in ("blog", "shop")]
    assert sorted(projects_in(visitor)) == pages
    for path in (*pages, f"{own}/settings", f"{own}/delete"):
        assert visitor.get(path).status == 200
        assert own in links(visitor)


def test_the_latest_projects_are_listed_with_their_number(visitor: Browser, company: Company):
    create(company, *(f"Shop {number}" for number in range(7)))
    reply = visitor.get(home(company))
    assert (len(projects_in(visitor)), "Projects 7 of" in text_of(reply)) == (5, True)


def test_a_name_is_shown_as_text(visitor: Browser, company: Company):
    create(company, "<script>{{7*7}}")
    assert "&lt;script&gt;{{7*7}}" in visitor.get(home(company)).text


def test_each_step_is_shown_until_all_are_done(visitor: Browser, company: Company, world: World):
    path = home(company)
    assert "0 of 5 done" in text_of(visitor.get(path))
    repository = world.connected_repository(company)
    assert "2 of 5 done" in text_of(visitor.get(path))
    project = projects.get_project(repository.links[0].project_id)
    assert f"{path}/projects/{project.slug}/consent" in links(visitor)
    install_consent(make_scan(repository, issues=[make_issue(1)]))
    found = world.finding(company, repository, priority="P0")
    shown = text_of(visitor.get(path))
    for words in ("4 of 5 done", "Open P0 findings 1", repository.name):
        assert words in shown
    inbox.change_status(found, "dismissed", found.version, company.owner.user_id, None)
    shown = text_of(visitor.get(path))
    assert ("of 5 done" in shown, "Open P0 findings 0" in shown) == (False, True)


def test_a_scan_without_findings_leaves_nothing_to_review(visitor: Browser, company: Company, world: World):
    install_consent(make_scan(world.connected_repository(company)))
    assert "of 5 done" not in text_of(visitor.get(home(company)))


def test_the_consent_library_is_noticed_in_code_and_by_what_a_website_reports(visitor: Browser, company, world):
    repository = world.connected_repository(company)
    # A vendor that the code only loads isn't ours to name on every plan.
    install_consent(make_scan(repository), packages=())
    assert "Install the consent library (to do)" in text_of(visitor.get(home(company)))
    intake.record_detection(detection(repository.links[0].project_id))
    assert "Install the consent library (done)" in text_of(visitor.get(home(company)))


def test_more_findings_than_are_counted_are_not_given_a_number(visitor: Browser, company: Company, world: World):
    for _ in range(51):
        world.finding(company)
    assert "More than 50" in text_of(visitor.get(home(company)))


def test_a_free_plan_says_what_it_lacks_and_a_member_who_can_connect(visitor: Browser, world: World, person: Person):
    company = world.company("free")
    world.member(company, person=person)
    shown = text_of(visitor.get(home(company)))
    for words, are_shown in (("need a paid plan", True), ("ask one of them", True), ("or create a key", False)):
        assert (words in shown) is are_shown


def test_an_address_without_an_organization_looks_like_a_missing_one(visitor: Browser, world: World, person: Person):
    left = world.company()
    world.leave(left, world.member(left, person=person))
    slugs = (left.slug, "missing", "ACME", "x" * 2000, "%23", "%C3%A9")
    replies = [visitor.get(f"/organizations/{slug}") for slug in slugs]
    assert ({reply.status for reply in replies}, len({reply.text for reply in replies})) == ({404}, 1)

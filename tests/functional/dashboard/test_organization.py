"""GET /organizations/{organizationSlug}: what is left to set up, the findings, the latest scans and projects."""

import re

import pytest

from controlplane.store import detections, inbox, projects
from controlplane.store.scans.inventories import Inventory, UsedVendor, VendorPackage
from controlplane.store.scans.items import ScanItem
from controlplane.store.table import Put, table
from dashboard.summaries import CONSENT_LIBRARY
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
    library = UsedVendor(vendor_id=CONSENT_LIBRARY, name="c15t", category="consent", packages=packages)
    table.put(Put(Inventory(files=1, vendors=(library,)).to_item(scan.scan_id)), PREPARED)


def links(browser: Browser) -> list[str]:
    """Returns the paths that the last page links to, in order."""
    assert browser.last is not None
    return re.findall(r'href="(/[^"]*)"', browser.last.text)


def projects_in(browser: Browser) -> set[str]:
    """Returns the pages of projects that the last page links to, without those below them."""
    return {path for path in links(browser) if re.search(r"/projects/shop[^/]*$|/projects/blog$", path)}


class TestShown:
    def test_every_project_is_reached_by_links_from_the_home_page(self, visitor: Browser, company: Company):
        create(company, "Shop", "Blog")
        own = f"/organizations/{company.slug}"
        for page in ("/", "/organizations"):
            visitor.get(page)
            assert own in links(visitor)
        assert visitor.get(own).status == 200
        pages = [f"{own}/projects/{slug}" for slug in ("blog", "shop")]
        assert sorted(projects_in(visitor)) == pages
        for path in (*pages, f"{own}/settings", f"{own}/delete"):
            assert visitor.get(path).status == 200
            assert own in links(visitor)

    def test_the_latest_projects_are_listed_with_their_number(self, visitor: Browser, company: Company):
        create(company, *(f"Shop {number}" for number in range(7)))
        reply = visitor.get(f"/organizations/{company.slug}")
        assert len(projects_in(visitor)) == 5
        assert "Projects 7 of" in text_of(reply)

    def test_each_step_is_shown_until_all_are_done(self, visitor: Browser, company: Company, world: World):
        path = f"/organizations/{company.slug}"
        assert "0 of 5 done" in text_of(visitor.get(path))
        repository = world.connected_repository(company)
        assert "2 of 5 done" in text_of(visitor.get(path))
        project = projects.get_project(repository.links[0].project_id)
        assert f"{path}/projects/{project.slug}/consent" in links(visitor)
        install_consent(make_scan(repository, issues=[make_issue(1)]))
        found = world.finding(company, repository, priority="P0")
        shown = text_of(visitor.get(path))
        assert "4 of 5 done" in shown
        assert "Open P0 findings 1" in shown
        assert repository.name in shown
        inbox.change_status(found, "dismissed", found.version, company.owner.user_id, None)
        shown = text_of(visitor.get(path))
        assert "of 5 done" not in shown
        assert "Open P0 findings 0" in shown

    def test_a_scan_without_findings_leaves_nothing_to_review(self, visitor: Browser, company: Company, world: World):
        install_consent(make_scan(world.connected_repository(company)))
        assert "of 5 done" not in text_of(visitor.get(f"/organizations/{company.slug}"))

    def test_the_consent_library_is_noticed_in_code_and_by_what_a_website_reports(self, visitor, company, world):
        path = f"/organizations/{company.slug}"
        repository = world.connected_repository(company)
        scan = make_scan(repository)
        # A vendor that the code only loads isn't ours to name on every plan.
        install_consent(scan, packages=())
        assert "Install the consent library (to do)" in text_of(visitor.get(path))
        detections.record_detection(detection(repository.links[0].project_id))
        assert "Install the consent library (done)" in text_of(visitor.get(path))

    def test_more_findings_than_are_counted_are_not_given_a_number(self, visitor: Browser, company, world):
        for _ in range(51):
            world.finding(company)
        assert "More than 50" in text_of(visitor.get(f"/organizations/{company.slug}"))

    def test_a_free_plan_says_what_it_lacks_and_a_member_who_can_connect(self, visitor: Browser, world, person):
        company = world.company("free")
        world.member(company, person=person)
        reply = visitor.get(f"/organizations/{company.slug}")
        assert "need a paid plan" in text_of(reply)
        assert "ask one of them" in text_of(reply)
        assert "or create a key" not in text_of(reply)

    def test_texts_of_users_are_escaped(self, visitor: Browser, company: Company):
        create(company, "<script>{{7*7}}")
        assert "&lt;script&gt;{{7*7}}" in visitor.get(f"/organizations/{company.slug}").text


class TestNotShown:
    def test_another_organization_looks_like_a_missing_one(self, visitor: Browser, world: World, company: Company):
        foreign, left = world.company(), world.company()
        world.leave(left, world.member(left, person=company.owner))
        replies = [
            visitor.get(f"/organizations/{slug}")
            for slug in (foreign.slug, left.slug, "missing", "ACME", "x" * 2000, "%23", "%C3%A9")
        ]
        assert {reply.status for reply in replies} == {404}
        assert len({reply.text for reply in replies}) == 1

"""GET /organizations/{organizationSlug}: an organization's projects."""

import re

import pytest

from controlplane.store import projects
from dashboard.projects import PROJECTS_PER_PAGE
from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.world import Company, Person, World


@pytest.fixture
def company(world: World, person: Person) -> Company:
    return world.company("enterprise", owner=person)


def create(company: Company, *names: str) -> None:
    for name in names:
        projects.create_project(company.organization_id, name, region="eu-central", addresses=[], branding="assent")


def links(browser: Browser) -> list[str]:
    """Returns the paths that the last page links to, in order."""
    assert browser.last is not None
    return re.findall(r'href="(/[^"]*)"', browser.last.text)


class TestShown:
    def test_every_project_is_reached_by_links_from_the_home_page(self, visitor: Browser, company: Company):
        create(company, "Shop", "Blog")
        own = f"/organizations/{company.slug}"
        for page in ("/", "/organizations"):
            visitor.get(page)
            assert own in links(visitor)
        assert visitor.get(own).status == 200
        pages = [f"{own}/projects/{slug}" for slug in ("blog", "shop")]
        assert sorted(path for path in links(visitor) if path.startswith(f"{own}/projects/")) == pages
        for path in (*pages, f"{own}/delete"):
            assert visitor.get(path).status == 200
            assert own in links(visitor)

    def test_projects_are_listed_in_pages(self, visitor: Browser, company: Company):
        create(company, *(f"Shop {number}" for number in range(PROJECTS_PER_PAGE + 1)))
        path: str | None = f"/organizations/{company.slug}"
        shown: list[str] = []
        pages = 0
        while path is not None:
            visitor.get(path)
            shown += [it for it in links(visitor) if "/projects/" in it]
            path = next((it for it in links(visitor) if "?after=" in it), None)
            pages += 1
        assert pages == 2
        assert len(shown) == len(set(shown)) == PROJECTS_PER_PAGE + 1

    @each("after", ["", "x", "prj_" + "0" * 34, "PROJECT%23", "%C3%A9"])
    def test_a_position_that_is_no_project_of_the_organization_shows_the_first_page(
        self, visitor: Browser, company: Company, after: str
    ):
        create(company, "Shop")
        assert "Shop" in text_of(visitor.get(f"/organizations/{company.slug}?after={after}"))

    def test_an_organization_without_projects_says_how_to_create_one(self, visitor: Browser, company: Company):
        assert "There are no projects here." in text_of(visitor.get(f"/organizations/{company.slug}"))

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

"""Connecting repositories: to GitHub's pages, back with proof of who the person is, and the choice of repositories."""

import re
from dataclasses import asdict
from html import unescape
from types import SimpleNamespace
from unittest.mock import Mock
from urllib.parse import parse_qsl, urlsplit

import pytest
import urllib3

from controlplane.code_host import repositories
from controlplane.code_host.github.connecting import GrantedRepository
from controlplane.code_host.items import HostedRepository, Link
from controlplane.erasure import deletions
from controlplane.organizations import store as organizations
from controlplane.platform.core.actions import Action
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.settings import settings
from controlplane.platform.http.reader import MAX_FORM_BYTES
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.scans.requests import request_scan
from dashboard.code_host import connecting, importing
from local.github import setup
from local.github.repositories import Repositories, stable_id
from local.github.setup import APP_SLUG, DEMO_FILES, DEMO_NAME, DEMO_OWNER, installation_id
from sweeper.app import handler as sweeper
from tests.functional.projects.builders import make_project
from tests.support.audit_log import all_entries
from tests.support.browser import Browser, text_of
from tests.support.cleanup import finish_deletions
from tests.support.each import each
from tests.support.github import github, request_violations, response_violations
from tests.support.github_faults import Fault
from tests.support.page import Entry
from tests.support.reply import Reply
from tests.support.world import Company, table_dump

CALLBACK = "/github/callback"
DEMO = f"{DEMO_OWNER}/{DEMO_NAME}"
SITE, SCANNED = f"{DEMO_OWNER}.example.com", Action.SCAN_REQUEST
SCAN = "Start the first scan"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Returns a folder with the App's key and secret, the demo repository, and two repositories of another owner."""
    root = tmp_path_factory.mktemp("github")
    setup.prepare(root)
    made = Repositories(root / "repositories")
    for name in ("blog", "wiki"):
        made.create("other", name, DEMO_FILES)
    return root


@pytest.fixture
def code_host(prepared, monkeypatch):
    with github(prepared) as served:
        served.configure(monkeypatch)
        served.stand_in.accounts.callback_url = f"{settings.dashboard_base_url}{CALLBACK}"
        yield served
        for exchange in served.exchanges:
            assert request_violations(exchange) == []
            assert response_violations(exchange) == []


def follow(url: str) -> str:
    """Returns the address that a page of GitHub redirects to."""
    reply = urllib3.request("GET", url, redirect=False)
    assert reply.status == 302
    return reply.headers["Location"]


def hosted(number: int) -> HostedRepository:
    return HostedRepository(
        hosted_id=number,
        installation_id=7,
        owner="other",
        name=f"{number:0100}",
        html_url=f"https://github.com/other/{number:0100}",
        default_branch="main",
        visibility="private",
    )


def begin(visitor: Browser, company: Company, query: str = "") -> str:
    """Returns the page of GitHub that the visitor is sent to."""
    reply = visitor.get(f"/organizations/{company.slug}/github{query}")
    assert reply.status == 303
    return reply.headers["location"]


def install(visitor: Browser, company: Company, owner: str = DEMO_OWNER) -> str:
    """Installs the App in the owner's account. Returns the callback that GitHub redirects to."""
    address = urlsplit(begin(visitor, company))
    page = address.path.replace("/new", f"/{installation_id(owner)}")
    return own(follow(address._replace(path=page).geturl()))


def own(url: str) -> str:
    """Returns the path and query of one of our pages."""
    parts = urlsplit(url)
    assert f"{parts.scheme}://{parts.netloc}" == settings.dashboard_base_url
    return f"{parts.path}?{parts.query}"


def changed(callback: str, **changes: object) -> str:
    path, _, query = callback.partition("?")
    values = {**dict(parse_qsl(query)), **changes}
    return f"{path}?{'&'.join(f'{name}={value}' for name, value in values.items() if value is not None)}"


def connect(visitor: Browser, name: str = DEMO, on: Reply | None = None, **fill: Entry) -> Reply:
    """Chooses the repository on the last page, unless it is the only one, and sends the form that scans it."""
    if visitor.last is not None and SCAN not in (on or visitor.last).text:
        visitor.press("Choose", near=name, on=on)
        on = None
    return visitor.press(SCAN, on=on, fill=fill)


def connected(company: Company) -> list[str]:
    found = repositories.list_all_repositories(company.organization_id, consistent=True)
    return sorted(f"{it.owner}/{it.name}" for it in found)


def offer(visitor: Browser, company: Company, owner: str = DEMO_OWNER, **changes: object) -> Reply:
    """Installs the App in the owner's account, and returns the page of repositories that GitHub leads back to."""
    return visitor.get(changed(install(visitor, company, owner), **changes))


def names_in(reply: Reply) -> list[str]:
    assert reply.status == 200, reply.text
    return [name for name in (DEMO, "other/blog", "other/wiki") if name in text_of(reply)]


class TestConnecting:
    def test_the_whole_path_from_the_organizations_page_to_the_first_scan(self, visitor, company, code_host):
        visitor.get(f"/organizations/{company.slug}")
        visitor.press("Repositories")
        assert visitor.offers("Connect GitHub")
        page = begin(visitor, company)
        assert page.startswith(f"{code_host.url}/github-apps/{APP_SLUG}/installations/new?state=")
        links = urllib3.request("GET", page).data.decode()
        assert f"/installations/{installation_id(DEMO_OWNER)}?state=" in links
        offered = offer(visitor, company)
        assert names_in(offered) == [DEMO]
        assert (visitor.entered("Name of the project"), visitor.entered("Website")) == (DEMO_NAME, SITE)
        before = all_entries()
        sent = connect(visitor)
        assert "The scan is requested." in text_of(visitor.follow(sent))
        logged = [it["action"] for it in all_entries() if it not in before]
        assert sorted(logged) == sorted([Action.REPOSITORY_CONNECT, Action.PROJECT_CREATE, Action.LINK_CREATE, SCANNED])
        (repository,) = repositories.list_all_repositories(company.organization_id)
        assert (repository.owner, repository.name, repository.default_branch) == (DEMO_OWNER, DEMO_NAME, "main")
        assert (repository.hosted_id, repository.installation_id) == (stable_id(DEMO), installation_id(DEMO_OWNER))
        assert (repository.html_url, repository.visibility) == (f"{code_host.url}/{DEMO}", "private")
        (project,) = projects.list_projects(company.organization_id, 5, None).items
        assert (project.name, [it.origin for it in project.websites]) == (DEMO_NAME, [SITE])
        assert repository.links == (Link(project.project_id, None, None, True, True),)
        assert DEMO in text_of(visitor.get(f"/organizations/{company.slug}/repositories"))
        # The same form again leads to the same scan.
        assert connect(visitor, on=offered).headers["location"] == sent.headers["location"]
        assert repositories.list_all_repositories(company.organization_id) == [repository]
        assert len(projects.list_projects(company.organization_id, 5, None).items) == 1

    def test_a_newcomers_form_leads_to_github_by_a_page_that_opens_it(self, visitor, code_host):
        visitor.get("/")
        shown = visitor.follow(visitor.press("Connect GitHub"))
        (target,) = re.findall(r'<meta http-equiv="refresh" content="0; url=([^"]+)">', shown.text)
        assert unescape(target).startswith(f"{code_host.url}/github-apps/{APP_SLUG}/installations/new?state=")
        assert f'href="{target}">Continue to GitHub' in shown.text

    @each("homepage", ["http://[foo", "http://a]b", "//", "mailto:x"])
    def test_a_malformed_homepage_suggests_no_website(self, homepage):
        chosen = GrantedRepository(hosted(1), homepage)
        assert importing.suggest(chosen, SimpleNamespace(plan="free"))["websites"] == ""

    def test_an_app_that_is_installed_needs_only_the_persons_identity(self, visitor, company, code_host):
        page = begin(visitor, company, "?installed=yes")
        assert page.startswith(f"{code_host.url}/login/oauth/authorize?")
        assert names_in(visitor.get(own(follow(page)))) == [DEMO, "other/blog", "other/wiki"]
        code_host.stand_in.faults.suspended = {installation_id(DEMO_OWNER)}
        page = begin(visitor, company, "?installed=yes")
        assert names_in(visitor.get(own(follow(page)))) == ["other/blog", "other/wiki"]
        # A callback without a code asks GitHub who the person is.
        location = offer(visitor, company, "other", code=None).headers["location"]
        assert location.startswith(f"{code_host.url}/login/oauth/authorize?")
        assert names_in(visitor.get(own(follow(location)))) == ["other/blog", "other/wiki"]

    def test_only_repositories_that_the_person_can_write_to_are_offered(self, visitor, company, code_host):
        code_host.stand_in.accounts.read_only = {"other/wiki"}
        assert names_in(offer(visitor, company, "other")) == ["other/blog"]
        chosen = {**visitor.sends(SCAN), "repository": str(stable_id("other/wiki"))}
        assert visitor.forge(f"/organizations/{company.slug}/repositories", chosen).status == 400
        assert connected(company) == []


class TestForm:
    """The form from a repository to its first scan: what it offers on each plan, and where it leads if a step fails."""

    @pytest.fixture
    def free(self, world, person):
        return world.company("free", owner=person)

    def test_a_plan_without_scans_of_pull_requests_says_so_and_scans_pushes(self, visitor, free, code_host):
        assert "The Free plan doesn't include scans of pull requests." in text_of(offer(visitor, free))
        connect(visitor)
        (repository,) = repositories.list_all_repositories(free.organization_id)
        ((_, _, _, pull_requests, push, _, _),) = repository.links
        assert (pull_requests, push) == (False, True)

    def test_an_existing_project_is_linked_even_if_no_other_can_be_created(self, visitor, free, code_host):
        made = [make_project(free).project_id for _ in range(PLANS["free"].projects)]
        offer(visitor, free)
        assert "A new project" not in visitor.last.text
        assert connect(visitor).status == 303
        (repository,) = repositories.list_all_repositories(free.organization_id)
        assert repository.links[0].project_id in made

    def test_an_unusable_value_or_a_deleted_project_is_refused_with_what_was_entered(self, visitor, company, code_host):
        deleted = make_project(company)
        offered = offer(visitor, company)
        reply = connect(visitor, Website="shop.example")
        assert (reply.status, connected(company), visitor.entered("Website")) == (400, [], "shop.example")
        projects.delete_project(deleted)
        reply = connect(visitor, on=offered, Project=deleted.name)
        assert (reply.status, "doesn't exist anymore" in text_of(reply)) == (400, True)
        assert connect(visitor).status == 303

    def test_a_step_that_fails_leads_to_what_was_made(self, visitor, company, code_host, monkeypatch):
        offered = offer(visitor, company)
        with monkeypatch.context() as patched:
            gone = Mock(side_effect=repositories.UnknownRepository)
            patched.setattr("controlplane.code_host.repositories.create_link", gone)
            assert "its repository isn't linked" in text_of(visitor.follow(connect(visitor)))
        (project,) = projects.list_projects(company.organization_id, 5, None).items
        (repository,) = repositories.list_all_repositories(company.organization_id)
        linked = repositories.link_project(repository.repository_id, Link(project.project_id, None, None, False))
        request_scan(linked, None, company.owner.user_id, {})
        assert offered.status == 200
        offer(visitor, company)
        assert "no scan started" in text_of(visitor.follow(connect(visitor, Project=project.name)))
        assert visitor.offers("Start scan")


class TestRefused:
    def test_an_installation_of_others_or_one_that_is_suspended_cannot_be_connected(self, visitor, company, code_host):
        code_host.stand_in.accounts.strangers = {"other"}
        callback = changed(install(visitor, company), installation_id=installation_id("other"))
        before = len(table_dump())
        reply = visitor.get(callback)
        assert (reply.status, "other/" in reply.text) == (403, False)
        assert len(table_dump()) == before + 1  # the used state
        assert offer(visitor, company, installation_id=4).status == 403
        code_host.stand_in.faults.suspended = {installation_id(DEMO_OWNER)}
        assert offer(visitor, company).status == 403

    def test_a_state_works_once_in_its_session_and_an_offer_for_an_hour(self, visitor, company, code_host, person, now):
        callback = install(visitor, company)
        other = Browser(visitor.api).signed_in(person.user_id)
        assert other.get(callback).status == 400
        for state in ("", "x", "a.b.c.d.e", f"{dict(parse_qsl(urlsplit(callback).query))['state']}0"):
            assert visitor.get(changed(callback, state=state)).status == 400
        offered, again = visitor.get(callback), visitor.get(callback)
        assert (offered.status, again.status) == (200, 400)
        late = install(visitor, company)
        now.advance(connecting.STATE_SECONDS)
        assert visitor.get(late).status == 400
        assert len(code_host.sent("GET /user/installations")) == 1
        assert (connect(visitor, on=offered).status, connected(company)) == (400, [])

    def test_no_more_is_offered_than_a_form_can_have(self, company):
        own = organizations.find_membership(company.owner.user_id, company.organization_id)
        granted = [GrantedRepository(hosted(number), "https://example.com") for number in range(500)]
        offers = connecting._seal_offers(own.organization_id, granted, "secret")
        assert 0 < len(offers.sealed) < MAX_FORM_BYTES
        assert offers.repositories == granted[: len(offers.repositories)]
        assert connecting.open_offers(own.organization_id, offers.sealed, "secret") == offers

    @each("changes", [{"homepage": ""}, {"owner": None}])
    def test_offers_of_another_release_are_refused_like_expired_ones(self, company, monkeypatch, changes):
        def described(repository):
            values = {**asdict(repository), **changes}
            return {name: value for name, value in values.items() if value is not None}

        with monkeypatch.context() as patched:
            patched.setattr("dashboard.code_host.connecting.asdict", described)
            sealed = connecting._seal_offers(company.organization_id, [GrantedRepository(hosted(1), "")], "x").sealed
        with pytest.raises(connecting.CallbackLost):
            connecting.open_offers(company.organization_id, sealed, "x")

    def test_a_code_that_github_rejects_and_an_outage_are_reported(self, visitor, company, code_host):
        reply = offer(visitor, company, code="x")
        assert (reply.status, "didn't confirm who you are" in text_of(reply)) == (400, True)
        code_host.stand_in.faults.add("GET /user/installations", Fault(502), Fault(502))
        reply = offer(visitor, company)
        assert (reply.status, "GitHub is unavailable" in text_of(reply)) == (503, True)

    def test_members_and_strangers_cannot_connect(self, visitor, world, person, company, code_host):
        member, stranger = world.company(), world.company()
        world.member(member, "admin", person)
        offer(visitor, member)
        world.leave(member, person)
        world.member(member, "member", person)
        assert connect(visitor).status == 403
        assert visitor.get(f"/organizations/{member.slug}/github").status == 403
        assert visitor.get(f"/organizations/{stranger.slug}/github").status == 404
        assert "Connect GitHub" not in visitor.get(f"/organizations/{member.slug}/repositories").text
        offer(visitor, company)
        chosen = visitor.sends(SCAN)
        second = world.company(owner=person)
        forgeries = ((member, {}, 403), (second, {}, 400), (company, {"offers": "x.y"}, 400))
        for organization, changes, status in forgeries:
            reply = visitor.forge(f"/organizations/{organization.slug}/repositories", {**chosen, **changes})
            assert (reply.status, connected(organization)) == (status, [])

    def test_without_a_client_secret_only_the_operator_connects(self, visitor, company):
        assert visitor.get(f"/organizations/{company.slug}/github").status == 404
        assert visitor.get(f"{CALLBACK}?state=x&code=x").status == 404
        assert "ask the operator" in text_of(visitor.get(f"/organizations/{company.slug}/repositories"))


class TestOwnership:
    """An installation belongs to one organization, unless the person who connected it moves it."""

    @pytest.fixture
    def rival(self, world):
        return world.company()

    def test_only_who_connected_it_can_use_it_in_another_organization(self, visitor, world, company, rival, code_host):
        second = world.company(owner=company.owner)
        for organization in (company, second):
            offer(visitor, organization)
            assert connect(visitor).status == 303
        other = Browser(visitor.api).signed_in(rival.owner.user_id)
        offer(other, rival)
        reply = connect(other)
        assert (reply.status, "belongs to another organization" in text_of(reply)) == (409, True)
        assert [connected(it) for it in (company, second, rival)] == [[DEMO], [DEMO], []]

    def test_it_is_free_after_its_last_repository_or_organization_is_gone(self, visitor, company, rival, code_host):
        page = offer(visitor, company, "other")
        for name in ("other/blog", "other/wiki"):
            connect(visitor, name, on=page)
        key = keys.installation(installation_id("other"))
        for repository in repositories.list_all_repositories(company.organization_id):
            assert table.get(key)
            repositories.disconnect_repository(repository.repository_id)
            sweeper({"detail-type": "Scheduled Event"}, None)
        assert table.get(key) is None
        other = Browser(visitor.api).signed_in(rival.owner.user_id)
        offer(other, rival, "other")
        assert connect(other, "other/blog").status == 303
        deletions.delete_organization(rival.organization_id)
        finish_deletions()
        assert table.get(key) is None

"""A person's organizations, the page of one, and the page of its members."""

import re
from dataclasses import replace

import pytest

from controlplane.findings import inbox, intake
from controlplane.organizations import invitations, members
from controlplane.organizations import store as organizations
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import Put, table
from controlplane.projects import store as projects
from controlplane.scans.items import ScanItem
from controlplane.scans.reads import Inventory, UsedVendor, VendorPackage, stored_leg
from dashboard.organizations.overview import CONSENT_CATEGORY
from tests.functional.dashboard.conftest import HOSTILE, pages_in, pages_of
from tests.functional.projects.builders import make_project
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser, text_of
from tests.support.populated_organization import detection
from tests.support.reply import Reply
from tests.support.table import PREPARED
from tests.support.world import Company, Person

PACKAGE = VendorPackage("vanilla-cookieconsent", "^3.1", "package.json")


@pytest.fixture
def company(world, person):
    return world.company("enterprise", owner=person)


def add_projects(company: Company, *names: str) -> None:
    for name in names:
        make_project(company, name, origins=())


def install_consent(scan: ScanItem, packages: tuple[VendorPackage, ...] = (PACKAGE,)) -> None:
    """Stores an inventory with the consent library for the scan."""
    category = CONSENT_CATEGORY
    library = UsedVendor(id="vanilla-cookieconsent", name="CookieConsent", category=category, packages=packages)
    table.put(stored_leg(scan.scan_id, Inventory(files=1, vendors=(library,))), PREPARED)


def links(browser):
    """Returns the paths that the last page links to, in order."""
    return re.findall(r'href="(/[^"]*)"', browser.last.text)


def projects_in(browser: Browser) -> set[str]:
    """Returns the pages of projects that the last page links to, without those below them."""
    return {path for path in links(browser) if re.search(r"/projects/shop[^/]*$|/projects/blog$", path)}


def home(company: Company) -> str:
    return f"/organizations/{company.slug}"


def test_every_project_is_reached_by_links_from_the_home_page(visitor, company):
    add_projects(company, "Shop", "Blog")
    own = home(company)
    visitor.get("/organizations")
    assert own in links(visitor)
    assert visitor.get("/").headers["location"] == own
    assert visitor.get(own).status == 200
    pages = [f"{own}/projects/{slug}" for slug in ("blog", "shop")]
    assert sorted(projects_in(visitor)) == pages
    for path in (*pages, f"{own}/settings", f"{own}/delete"):
        assert visitor.get(path).status == 200
        assert own in links(visitor)


def test_the_latest_projects_are_listed_with_their_number_and_many_findings_without(visitor, company, world):
    add_projects(company, "Shop <script>{{7*7}}")
    assert "&lt;script&gt;{{7*7}}" in visitor.get(home(company)).text
    add_projects(company, *(f"Shop {number}" for number in range(7)))
    for _ in range(51):
        world.finding(company)
    shown = text_of(visitor.get(home(company)))
    assert (len(projects_in(visitor)), "Projects 8 of" in shown, "More than 50" in shown) == (5, True, True)


def test_each_step_is_shown_until_all_are_done(visitor, company, world):
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


def test_the_consent_library_is_noticed_in_code_and_by_what_a_website_reports(visitor, company, world):
    repository = world.connected_repository(company)
    scan = make_scan(repository)
    # A library that the code only loads isn't readable on every plan.
    install_consent(scan, packages=())
    assert "Install a consent library (to do)" in text_of(visitor.get(home(company)))
    intake.record_detection(detection(repository.links[0].project_id))
    assert "Install a consent library (done)" in text_of(visitor.get(home(company)))


def test_a_scan_without_findings_leaves_nothing_to_review(visitor, company, world):
    install_consent(make_scan(world.connected_repository(company)))
    assert "of 5 done" not in text_of(visitor.get(home(company)))


def test_a_member_on_the_free_plan_sees_its_limits_and_only_steps_that_are_left_to_take(visitor, world, person):
    company = world.company("free")
    world.member(company, person=person)
    shown = text_of(visitor.get(home(company)))
    for words, are_shown in (
        ("need a paid plan", True),
        ("Create a project", True),
        ("Connect a", False),
        ("of 5 done", False),
    ):
        assert (words in shown) is are_shown


SAVE, FORM = "/organizations", "/organizations/new"
CONFIRMATION = "Name of the organization"


@pytest.fixture
def named(world, person):
    return world.company(name="Acme & Sons", owner=person)


def create(visitor: Browser, name: str, slug: str = "") -> Reply:
    visitor.get(FORM)
    return visitor.press("Create the organization", fill={"Name": name, "Slug": slug})


path = pages_in("delete")


def slugs(person: Person) -> list[str]:
    return [held.slug for held in organizations.get_account(person.user_id).memberships]


def active(browser: Browser, person: Person) -> str | None:
    return browser.api.get("/v1/me", person.token).data["activeOrganizationId"]


class TestCreated:
    def test_the_first_organization_is_created_on_the_welcome_page(self, visitor, person):
        assert "Welcome, Ada Lovelace" in text_of(visitor.get("/"))
        reply = create(visitor, "  Acmé Shops ")
        assert (reply.status, reply.headers["location"]) == (303, "/organizations/acme-shops?done=created")
        (made,) = organizations.get_account(person.user_id).memberships
        assert (made.name, made.slug, made.role) == ("Acmé Shops", "acme-shops", "owner")
        assert "Your organization is ready." in text_of(visitor.follow(reply))
        assert "Create a project" in text_of(visitor.get(f"/organizations/{made.slug}?done=x"))

    def test_an_invitation_can_be_accepted_on_the_welcome_page(self, visitor, person, world):
        company = world.company(name="Cedar")
        world.invitation(company, person.email, "admin")
        assert "Join Cedar" in text_of(visitor.get("/"))
        reply = visitor.press("Accept")
        assert reply.headers["location"] == f"/organizations/{company.slug}?done=joined"
        assert "You are now an admin of Cedar." in text_of(visitor.follow(reply))


class TestRefused:
    def test_a_taken_slug_keeps_the_name_and_suggests_others(self, visitor, person, world):
        organizations.create_organization("Dogwood", "dogwood", world.person().user_id)
        assert create(visitor, "New").headers["location"] == "/organizations/new-2?done=created"
        for slug, suggestions in (("new", "new-3"), ("dogwood", "for example dogwood-2, dogwood-3, dogwood-4")):
            reply = create(visitor, "Dogwood", slug)
            assert (reply.status, suggestions in text_of(reply)) == (409, True)
        assert (visitor.entered("Name"), visitor.entered("Slug")) == ("Dogwood", "dogwood")
        assert visitor.press("Create the organization", fill={"Slug": "dogwood-2"}).status == 303
        assert sorted(slugs(person)) == ["dogwood-2", "new-2"]

    def test_a_person_creates_at_most_the_limit(self, visitor, person, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "organizations_per_person", 3)
        for slug in (" birch-2 ", "abc", "a" * 20):
            assert create(visitor, "Acme", slug).status == 303
        reply = create(visitor, "Birch")
        assert (reply.status, "maximum number of organizations" in text_of(reply)) == (409, True)
        assert {*slugs(person)} == {"birch-2", "abc", "a" * 20}


def test_only_another_organization_can_be_made_the_default(visitor, world, person):
    assert "You don't belong to an organization yet" in text_of(visitor.get(SAVE))
    company = world.company(owner=person, name="Acme")
    shown = text_of(visitor.get(SAVE))
    assert ("Default" in shown, company.slug in shown) == (True, True)
    assert not visitor.offers("Make default")
    others = [world.company(owner=person, name=name) for name in ("Birch", "Cedar")]
    visitor.get(SAVE)
    offered = [visitor.offers(f"Make default organization: {name}") for name in ("Acme", "Birch", "Cedar")]
    assert (offered, active(visitor, person)) == ([0, 1, 1], company.organization_id)
    reply = visitor.follow(visitor.press("Make default", near="Birch"))
    assert "Birch is saved as your default organization." in text_of(reply)
    for named in ("", "ORG#x", world.company().organization_id):
        reply = visitor.forge(SAVE, {"organization_id": named})
        assert (reply.status, "You aren't a member of this organization." in text_of(reply)) == (404, True)
    assert active(visitor, person) == others[0].organization_id
    own = f"{SAVE}/{company.slug}/settings"
    visitor.get(own)
    reply = visitor.press("Make this my default")
    assert (reply.status, reply.headers["location"]) == (303, f"{own}?done=default")
    assert "This is now your default organization." in text_of(visitor.follow(reply))
    assert "This is your default organization" in text_of(visitor.get(own))
    assert (visitor.offers("Make this my default"), active(visitor, person)) == (0, company.organization_id)
    world.clear_default(person)
    visitor.get(SAVE)
    assert visitor.offers("Make default") == 3


@pytest.mark.parametrize(
    ("role", "others"),
    [("owner", "another owner"), ("admin", "another admin or an owner"), ("member", "an admin or owner")],
)
def test_the_settings_name_those_who_may_remove_the_person(visitor, world, person, role, others):
    company = world.company()
    world.member(company, role, person)
    assert f"Ask {others} to remove you." in text_of(visitor.get(f"{home(company)}/settings"))


def test_only_owners_see_the_link_to_the_deletion_page(visitor, world, person):
    own, other = world.company(owner=person), world.company()
    world.member(other, "admin", person)
    assert f'href="{path(own)}"' in visitor.get(f"/organizations/{own.slug}/settings").text
    shown = visitor.get(f"/organizations/{other.slug}/settings")
    assert f'href="{path(other)}"' not in shown.text
    assert "Only an owner can delete an organization." in text_of(shown)
    reply = visitor.get(path(other))
    assert (reply.status, "Only owners can do this. Your role is admin." in text_of(reply)) == (403, True)


@pytest.mark.parametrize("typed", ["  Acme & Sons ", "slug"])
def test_entering_the_name_or_slug_deletes_the_organization(visitor, world, named, typed):
    key = world.key(named)
    shown = text_of(visitor.get(path(named)))
    assert ("Delete Acme & Sons?" in shown, "This cannot be undone" in shown) == (True, True)
    assert visitor.entered(CONFIRMATION) == ""
    reply = visitor.press("Delete this organization", fill={CONFIRMATION: named.slug if typed == "slug" else typed})
    text = text_of(visitor.follow(reply))
    for words in ("The organization is deleted.", "You don't belong to an organization yet"):
        assert words in text
    assert visitor.api.get("/v1/projects", key).status == 401
    assert visitor.get(path(named)).status == 404


members_path = pages_in("members")


def roles(company: Company) -> dict[str, str]:
    return {it.user_id: it.role for it in members.list_members(company.organization_id, 50, None).items}


def member_id(company: Company, person: Person) -> str:
    return f"mem_{company.organization_id[4:]}{person.user_id[4:]}"


def forge_change(browser: Browser, company: Company, person: Person, **fields: str) -> Reply:
    return browser.forge(members_path(company, "/change"), {"member_id": member_id(company, person), **fields})


def invite(visitor: Browser, company: Company, email: str, role: str = "Member") -> Reply:
    visitor.get(members_path(company))
    return visitor.press("Invite", fill={"Email address": email, "Role": role})


class TestInvite:
    def test_an_invited_person_accepts_through_the_link(self, visitor, company, world):
        guest = world.person()
        reply = invite(visitor, company, f" {guest.email} ", "Admin")
        assert (reply.status, reply.headers["location"]) == (303, members_path(company, "?done=invited"))
        reply = visitor.follow(reply)
        for words in ("The invitation is created.", guest.email):
            assert words in text_of(reply)
        (link,) = re.findall(r'<code id="link">([^<]+)</code>', reply.text)
        browser = Browser(visitor.api).signed_in(guest.user_id)
        browser.get("/" + link.split("/", 3)[3])
        browser.press("Accept")
        assert roles(company)[guest.user_id] == "admin"

    def test_an_invitation_is_renewed_up_to_its_limit_and_withdrawn(self, visitor, company):
        invite(visitor, company, "new@example.com")
        assert "No email is sent. Send this link yourself" in text_of(visitor.get(members_path(company)))
        for times in ("1 time", "2 times", "3 times"):
            shown = text_of(visitor.follow(visitor.press("Renew")))
            assert f"expires on March 11, 2026 · sent again {times}" in shown
        reply = visitor.press("Renew")
        assert (reply.status, "Try again tomorrow" in text_of(reply)) == (409, True)
        page = visitor.get(members_path(company))
        assert "No invitation is pending." in text_of(visitor.follow(visitor.press("Withdraw")))
        assert visitor.press("Withdraw", on=page).status == 404

    def test_with_emails_the_page_says_what_became_of_each(self, visitor, company, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "email_sender", "no-reply@assent.test")
        reply = invite(visitor, company, "new@example.com")
        assert reply.headers["location"] == members_path(company, "?done=mailed")
        assert "Invited people get an email" in text_of(visitor.get(reply.headers["location"]))
        (invitation,) = invitations.list_invitations(company.organization_id, 50, None).items
        table.put(Put(replace(invitation, mail="returned").to_item()), PREPARED)
        assert "Email returned: the address" in text_of(visitor.get(members_path(company)))
        assert visitor.press("Resend").headers["location"] == members_path(company, "?done=resent")
        assert "Email returned" not in text_of(visitor.get(members_path(company)))


class TestChange:
    def test_an_owner_changes_a_role_and_removes_the_member(self, visitor, company, world):
        other = world.member(company, person=world.person(name="Grace Hopper"))
        visitor.get(members_path(company))
        reply = visitor.press("Change the role of Grace Hopper", fill={"Role of Grace Hopper": "Owner"})
        assert reply.headers["location"] == members_path(company, "?done=changed")
        assert roles(company)[other.user_id] == "owner"
        page = visitor.follow(reply)
        assert visitor.press("Remove Grace Hopper").headers["location"] == members_path(company, "?done=removed")
        assert other.user_id not in roles(company)
        reply = visitor.press("Remove Grace Hopper", on=page)
        assert (reply.status, "no longer a member" in text_of(reply)) == (404, True)

    def test_the_last_owner_stays_and_a_member_is_told_who_may_change_members(self, visitor, company, person, world):
        assert "Owner, the only one" in text_of(visitor.get(members_path(company)))
        for fields, message in (({"role": "admin"}, "last owner"), ({"action": "remove"}, "You can't remove yourself")):
            reply = forge_change(visitor, company, person, **fields)
            assert (reply.status, message in text_of(reply)) == (403, True)
        assert roles(company) == {person.user_id: "owner"}
        visitor.signed_in(world.member(company).user_id)
        assert "Admins and owners can invite people" in text_of(visitor.get(members_path(company)))
        assert visitor.buttons() == {"Sign out"}

    def test_an_admin_is_offered_only_what_an_admin_may_do(self, browser, company, world):
        admin = world.member(company, "admin", world.person(name="Grace Hopper"))
        member = world.member(company, person=world.person(name="Alan Turing"))
        browser.signed_in(admin.user_id)
        shown = browser.get(members_path(company))
        assert "Only owners can change owners" in text_of(shown)
        assert '<option value="owner"' not in shown.text
        assert browser.offers("Change") == 2
        for fields in ({"role": "member"}, {"action": "remove"}):
            reply = forge_change(browser, company, company.owner, **fields)
            assert (reply.status, "Only an owner" in text_of(reply)) == (403, True)
        assert forge_change(browser, company, member, role="owner").status == 403
        browser.get(members_path(company))
        assert browser.press("Change", near="Alan Turing", fill={"Role of Alan Turing": "Admin"}).status == 303
        assert roles(company)[member.user_id] == "admin"


def test_members_are_listed_in_pages_and_their_names_escaped(visitor, company, world, monkeypatch):
    monkeypatch.setattr("dashboard.organizations.members.PER_PAGE", 2)
    for _ in range(2):
        world.member(company, person=world.person(name=HOSTILE))
    pages = [*pages_of(visitor, members_path(company))]
    shown = "".join(page.text.partition("<main")[2].partition('id="invitations-title"')[0] for page in pages)
    assert ("{{739*911}}" in shown, "<script>alert" in shown) == (True, False)
    seen = re.findall(r"person\d+@example.com", shown)
    assert len({*seen}) == len(seen) == 3

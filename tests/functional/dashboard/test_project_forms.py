"""The pages that list, create, change, and delete projects, and decide on their vendors."""

import re

import pytest

from controlplane.billing import store as billing
from controlplane.findings import vendors
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.changes import ProjectChange, update_project
from controlplane.projects.items import Address, ProjectItem
from scripts.rule_texts import SNIPPETS, describe_snippets
from tests.functional.dashboard.conftest import pages_of
from tests.functional.projects.builders import add_audits, make_project
from tests.support.browser import Browser, text_of
from tests.support.calls import before_the_transaction
from tests.support.reply import Reply
from tests.support.world import Company

HOSTILE = "\"><script>alert(1)</script>{{739*911}}'&"


@pytest.fixture
def project(company: Company) -> ProjectItem:
    return make_project(company, "Shop")


def path(company: Company, below: str = "") -> str:
    return f"/organizations/{company.slug}/projects{below}"


def stored(project: ProjectItem) -> ProjectItem:
    return projects.get_project(project.project_id)


def forge_change(browser: Browser, company: Company, project: ProjectItem, action: str, **fields: str) -> Reply:
    return browser.forge(path(company, f"/{project.slug}/settings"), {"action": action, **fields})


class TestCreate:
    def test_a_form_creates_a_project_once_and_leads_to_it(self, visitor: Browser, company: Company):
        page = visitor.get(path(company, "/new"))
        websites = "https://Shop.example.com/\n\nlocalhost:3000\n"
        entered = {"Name": " Shop ", "Region": "United States (Virginia)", "Websites": websites}
        for _ in range(2):
            reply = visitor.press("Create the project", fill=entered, on=page)
            assert (reply.status, reply.headers["location"]) == (303, path(company, "/shop?done=created"))
        (made,) = projects.list_projects(company.organization_id, 50, None).projects
        assert (made.name, made.region) == ("Shop", "us-east")
        assert made.trusted_origins == ["shop.example.com", "localhost:3000"]
        assert "The project is created." in text_of(visitor.get(reply.headers["location"]))

    def test_an_unusable_form_creates_nothing_and_keeps_what_was_entered(self, visitor: Browser, company: Company):
        for changes, status, message in (
            ({"name": ""}, 400, "Enter a name"),
            ({"region": "moon"}, 400, "no such region"),
            ({"websites": "shop.example.com\nnot a site"}, 400, "not a site: "),
            ({"websites": "\n".join(f"s{n}.example.com" for n in range(51))}, 400, "at most 50 websites"),
            ({"websites": HOSTILE}, 400, "alert(1)"),
        ):
            visitor.get(path(company, "/new"))
            kept = {"name": "Shop", "region": "eu-west", "websites": "shop.example.com", **changes}
            reply = visitor.forge(path(company, "/new"), {**visitor.sends("Create the project"), **kept})
            assert (reply.status, message in text_of(reply)) == (status, True)
            assert (visitor.entered("Name"), visitor.entered("Websites")) == (kept["name"], kept["websites"])
            assert "<script>alert" not in reply.text
        assert projects.list_projects(company.organization_id, 50, None).projects == []

    def test_the_plans_limit_is_shown_before_and_enforced(self, visitor: Browser, company: Company):
        billing.change_plan(company.organization_id, "free")
        visitor.get(path(company, "/new"))
        for number in range(10):
            make_project(company, f"Shop {number}")
        assert visitor.press("Create the project", fill={"Name": "Eleventh"}).status == 402
        for at in ("/new", ""):
            assert "the most that the Free plan includes" in text_of(visitor.get(path(company, at)))
            assert not visitor.offers("Create the project")

    def test_a_project_named_like_a_page_gets_another_slug(self, visitor: Browser, company: Company):
        assert make_project(company, "New").slug == "new-project"
        assert "New" in text_of(visitor.get(path(company, "/new-project")))


class TestSettings:
    def test_each_form_changes_its_part_and_leads_to_the_settings(self, visitor: Browser, company, project):
        visitor.get(path(company, "/shop/settings"))
        for label, near, entered, done, message in (
            ("Save", "Description", {"Name": "Store", "Description": " The web shop "}, "described", ""),
            ("Add", "", {"Add websites": "www.example.org\n*.example.org"}, "websites-added", ""),
            ("Save", "Name in the banner", {"Name in the banner": "No name"}, "branded", "The branding is saved."),
            ("Make primary", "www.example.org", {}, "primary-changed", ""),
        ):
            reply = visitor.press(label, near=near, fill=entered)
            assert (reply.status, reply.headers["location"]) == (303, path(company, f"/store/settings?done={done}"))
            assert message in text_of(visitor.follow(reply))
        after = stored(project)
        assert (after.name, after.description) == ("Store", "The web shop")
        assert after.consent is not None
        assert after.consent.branding == "none"
        assert {*after.trusted_origins} == {"example.com", "www.example.org", "*.example.org"}
        assert after.primary_website is not None
        assert after.primary_website.origin == "www.example.org"
        visitor.press("Remove the website", near="www.example.org")
        assert "www.example.org" not in stored(project).trusted_origins

    def test_an_unusable_form_changes_nothing_and_says_why(self, visitor: Browser, company, project):
        for action, fields, status, message in (
            ("describe", {"name": "\u202e"}, 400, "Enter a name"),
            ("describe", {"name": "Shop", "description": "x" * 513}, 400, "at most 512"),
            ("brand", {"branding": "mine"}, 400, "Choose one of the brandings"),
            ("add-websites", {"websites": " "}, 400, "Enter at least one address"),
            ("add-websites", {"websites": HOSTILE}, 400, "alert(1)"),
            ("make-primary", {"website_id": "x"}, 404, ""),
            ("remove-website", {"website_id": "x"}, 404, ""),
            ("explode", {}, 400, "Choose what to change"),
        ):
            reply = forge_change(visitor, company, project, action, **fields)
            assert (reply.status, message in text_of(reply)) == (status, True)
            assert "<script>alert" not in reply.text
        assert stored(project) == project

    def test_a_branding_that_the_plan_lacks_names_whom_to_ask(self, visitor: Browser, company, project):
        visitor.get(path(company, "/shop/settings"))
        visitor.press("Save", near="Name in the banner", fill={"Name in the banner": "No name"})
        billing.change_plan(company.organization_id, "starter")
        shown = visitor.get(path(company, "/shop/settings"))
        assert "that takes the Pro plan or higher. To change the plan" in text_of(shown)
        assert '<option value="none" disabled>' in shown.text
        assert visitor.press("Save", near="Description").status == 303
        kept = stored(project).consent
        assert kept is not None
        assert kept.branding == "none"  # applies again after an upgrade
        reply = forge_change(visitor, company, project, "brand", branding="none")
        assert (reply.status, "To change the plan" in text_of(reply)) == (402, True)

    def test_adding_a_website_keeps_what_another_person_adds_at_the_same_time(self, visitor, company, project):
        visitor.get(path(company, "/shop/settings"))

        def add() -> None:
            added: ProjectChange = {"added_websites": [Address("b.example.net", "domain")]}
            update_project(project, added, may_remove_websites=False)

        with before_the_transaction(table.client, add):
            visitor.press("Add", fill={"Add websites": "a.example.net"})
        assert stored(project).trusted_origins == ["example.com", "b.example.net", "a.example.net"]

    def test_a_member_changes_what_the_api_allows_and_removes_nothing(self, browser: Browser, company, project, world):
        browser.signed_in(world.member(company).user_id)
        shown = browser.get(path(company, "/shop/settings"))
        assert "Admins and owners can remove websites." in text_of(shown)
        assert "Admins and owners can delete the project." in text_of(shown)
        assert browser.press("Add", fill={"Add websites": "a.example.net"}).status == 303
        assert not browser.offers("Remove the website")
        assert browser.get(path(company, "/shop/delete")).status == 403


class TestDelete:
    def test_only_a_typed_name_or_slug_deletes_the_project(self, visitor: Browser, company, project):
        visitor.get(path(company, "/shop/delete"))
        for typed in ("", "shop ping", HOSTILE):
            reply = visitor.press("Delete this project", fill={"Name of the project": typed})
            assert (reply.status, "Nothing was deleted." in text_of(reply)) == (400, True)
        reply = visitor.press("Delete this project", fill={"Name of the project": " Shop "})
        assert (reply.status, reply.headers["location"]) == (303, path(company, "?done=deleted"))
        with pytest.raises(projects.UnknownProject):
            stored(project)
        assert "The project is deleted." in text_of(visitor.get(reply.headers["location"]))


class TestVendors:
    def test_an_admin_decides_about_a_vendor_and_sees_the_decision(self, visitor: Browser, company, project):
        at = path(company, "/shop/vendors")
        assert "No vendors yet" in text_of(visitor.get(at))
        for label, state in (("Approve", "approved"), ("Ignore", "ignored")):
            reply = visitor.press(label, near="Vendor ID", fill={"Vendor ID": " Segment "})
            assert reply.headers["location"] == f"{at}?done={state}"
            assert f"segment {state.capitalize()}" in text_of(visitor.follow(reply))
        assert visitor.offers("Ignore segment") == 0
        visitor.press("Approve segment")
        (decided,) = vendors.list_vendors(project.project_id, 50, None).items
        assert (decided.state, decided.decided_by) == ("approved", company.owner.user_id)
        visitor.get(at)
        visitor.press("Ignore segment")
        (decided,) = vendors.list_vendors(project.project_id, 50, None).items
        assert decided.state == "ignored"
        for wrong in ({"vendor_id": HOSTILE, "decision": "ignore"}, {"vendor_id": "segment", "decision": "maybe"}):
            reply = visitor.forge(at, wrong)
            assert (reply.status, "<script>alert" in reply.text) == (400, False)

    def test_vendors_are_listed_in_pages(self, visitor: Browser, company, project, person, monkeypatch):
        monkeypatch.setattr("dashboard.projects.pages.VENDORS_PER_PAGE", 2)
        for vendor in ("a", "b", "c"):
            vendors.decide_vendor(project, vendor, "approved", person.user_id)
        first = path(company, "/shop/vendors")
        seen = [it for page in pages_of(visitor, first) for it in re.findall(r"<h2>([abc])</h2>", page.text)]
        assert seen == ["a", "b", "c"]
        assert visitor.get(f"{first}?after=%F0%9F").status == 400


class TestConsent:
    def test_the_code_uses_the_instances_own_address(self, visitor: Browser, company, project, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "consent_runtime_base_url", "https://consent.example.com")
        shown = visitor.get(path(company, "/shop/consent"))
        assert f"backendURL: 'https://consent.example.com/{project.consent.instance_id}'" in text_of(shown)
        monkeypatch.setitem(settings.__dict__, "consent_runtime_base_url", None)
        assert "mode: 'offline'" in text_of(visitor.get(path(company, "/shop/consent")))

    def test_the_code_is_that_of_the_fixes_of_scans(self):
        assert SNIPPETS.read_text() == describe_snippets(), "run python -m scripts.rule_texts"


def test_the_audit_state_of_a_website_is_shown(visitor: Browser, company: Company, project: ProjectItem):
    add_audits(project)
    assert "1 audit" in text_of(visitor.get(path(company, "/shop/settings")))
    assert "Audited" in text_of(visitor.get(path(company, "/shop")))

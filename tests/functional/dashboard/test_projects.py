"""The pages of projects: lists, one and its consent, forms that create, change, and delete one, and its vendors."""

import re
from urllib.parse import urlsplit

import pytest

from controlplane.billing import store as billing
from controlplane.findings import vendors
from controlplane.findings.code_uses import FoundVendor, record_uses
from controlplane.findings.items import CodeUse, VendorPlace
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.regions import parse_regions
from controlplane.platform.core.settings import settings
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from scripts.rule_texts import SNIPPETS, describe_snippets
from tests.functional.dashboard.conftest import HOSTILE, pages_in, pages_of
from tests.functional.projects.builders import add_audits, make_project
from tests.support.browser import Browser, text_of
from tests.support.cleanup import finish_deletions
from tests.support.world import Company

PAGES = pytest.mark.parametrize("below", ["", "/consent"])


def created(browser: Browser, company: Company, **fields: object) -> dict:
    body = {"name": "Shop", "region": "eu-central", "websites": ["https://shop.example.com", "*.example.org"], **fields}
    return browser.api.post("/v1/projects", company.owner.token, json_body=body).data


def path_of(address: str) -> str:
    return urlsplit(address).path


def rename(browser: Browser, company: Company, project: dict, name: str) -> None:
    path = f"/v1/projects/{project['id']}"
    assert browser.api.patch(path, company.owner.token, json_body={"projectName": name}).status == 200


class TestShown:
    def test_the_dashboard_urls_of_a_response_lead_to_the_project_and_its_consent(self, visitor, company):
        project = created(visitor, company)
        told = visitor.api.get(f"/v1/projects/{project['id']}", company.owner.token).data
        consent = told["products"]["consent"]
        for address, words in (
            (told["dashboardUrl"], ("Shop", project["id"], "Europe (Frankfurt)", "shop.example.com Primary")),
            (
                consent["dashboardURL"],
                (consent["instanceId"], consent["branding"], f"Version {consent['backendVersion']}"),
            ),
        ):
            reply = visitor.get(path_of(address))
            for text in (*words, "*.example.org"):
                assert text in text_of(reply)
            assert f'href="{path_of(told["consent"]["dashboardUrl"])}"' in reply.text

    def test_each_tab_leads_to_the_page_that_it_names_and_marks_it(self, visitor, project, company):
        own = f"/organizations/{company.slug}/projects/{project.slug}"
        tabs = re.findall(
            r'<li><a href="([^"]+)"[^>]*>(\w+)</a>', visitor.get(own).text.partition('label="Project"')[2]
        )
        assert [name for _, name in tabs[:6]] == ["Overview", "Consent", "Audits", "Vendors", "Report", "Settings"]
        for path, name in tabs[:6]:
            shown = visitor.get(path).text
            beginning = {"Overview": "", "Report": "Report on "}.get(name, f"{name} of ")
            assert f'<a href="{path}" aria-current="page">{name}</a>' in shown
            assert f"<h1>{beginning}Shop</h1>" in shown

    def test_the_consent_page_tells_consent_entries_from_audited_websites(self, visitor, company):
        project = created(visitor, company, websites=["shop.example.com", "audited.example.com"])
        add_audits(projects.get_project(ProjectId.stored(project["id"])), 1)
        visitor.api.patch(
            f"/v1/projects/{project['id']}",
            company.owner.token,
            json_body={"consent": {"trustedOrigins": ["shop.example.com"]}},
        )
        words = text_of(visitor.get(path_of(project["dashboardUrl"]) + "/consent"))
        others = "Consent also loads on these audited websites: audited.example.com."
        assert f"Trusted origins shop.example.com {others}" in words
        assert "audited.example.com Domain Audited" in text_of(visitor.get(path_of(project["dashboardUrl"])))

    def test_the_consent_page_shows_the_branding_that_the_plan_allows(self, visitor, company):
        project = created(visitor, company, consent={"branding": "none"})
        page = path_of(project["consent"]["dashboardUrl"])
        for plan, branding in (("pro", "none"), ("starter", "assent"), ("pro", "none")):
            billing.change_plan(company.organization_id, plan)
            assert f"Branding {branding} " in text_of(visitor.get(page))


@PAGES
class TestRenamed:
    def test_a_former_address_redirects_to_the_current_one_with_its_query(self, visitor, company, below):
        project = created(visitor, company)
        former, current = (f"/organizations/{company.slug}/projects/{it}{below}" for it in ("shop", "market"))
        for name in ("Store", "Market"):
            rename(visitor, company, project, name)
        for query in ("", "?tab=a&x=%C3%A9"):
            reply = visitor.get(former + query)
            assert (reply.status, reply.headers["cache-control"]) == (307, "no-store")
            assert reply.headers["location"] == f"{current}{query}"
        assert visitor.get(current).status == 200
        rename(visitor, company, project, "Shop")
        assert (visitor.get(former).status, visitor.get(current).headers["location"]) == (200, former)

    def test_a_new_project_with_the_former_slug_is_shown_instead_with_its_texts_escaped(self, visitor, company, below):
        project, text = created(visitor, company), "<script>alert(1)</script>{{7*7}}"
        visitor.api.patch(f"/v1/projects/{project['id']}", company.owner.token, json_body={"projectName": text})
        new = created(visitor, company, websites=["https://new.example.com"])
        visitor.api.patch(f"/v1/projects/{new['id']}", company.owner.token, json_body={"description": text})
        for slug, website in (("shop", "new.example.com"), ("script-alert-1-script-7-7", "shop.example.com")):
            reply = visitor.get(f"/organizations/{company.slug}/projects/{slug}{below}")
            assert (reply.status, website in reply.text) == (200, True)
            assert "&lt;script&gt;" in reply.text or (below and new["slug"] == slug)
        rename(visitor, company, project, "Shop")
        assert "new.example.com" in visitor.get(path_of(new["dashboardUrl"]) + below).text

    def test_others_and_everybody_after_the_deletion_get_404_for_a_former_slug(self, visitor, world, company, below):
        project = created(visitor, company)
        rename(visitor, company, project, "Store")
        unknown = ("x", "STORE", "%23", "x" * 2000, "%C3%A9", "%F0%9F%98%80")
        addresses = [f"/organizations/{company.slug}/projects/{slug}{below}" for slug in ("shop", "store", *unknown)]
        stranger = Browser(visitor.api).signed_in(world.person().user_id)
        replies = [stranger.get(address) for address in addresses]
        assert ({reply.status for reply in replies}, len({reply.text for reply in replies})) == ({404}, 1)
        assert [visitor.get(address).status for address in addresses] == [307, 200] + [404] * len(unknown)
        visitor.api.delete(f"/v1/projects/{project['id']}", company.owner.token)
        assert {visitor.get(address).status for address in addresses} == {404}
        finish_deletions()
        assert {visitor.get(address).status for address in addresses} == {404}


path = pages_in("projects")


def stored(project: ProjectItem) -> ProjectItem:
    return projects.get_project(project.project_id)


class TestCreate:
    def test_a_form_creates_a_project_once_and_leads_to_it(self, visitor, company):
        page = visitor.get(path(company, "/new"))
        websites = "https://Shop.example.com/\n\nlocalhost:3000\n"
        entered = {"Name": " Shop ", "Region": "United States (Virginia)", "Websites": websites}
        for _ in range(2):
            reply = visitor.press("Create the project", fill=entered, on=page)
            assert (reply.status, reply.headers["location"]) == (303, path(company, "/shop?done=created"))
        (made,) = projects.list_projects(company.organization_id, 50, None).items
        assert (made.name, made.region) == ("Shop", "us-east")
        assert made.trusted_origins == ["shop.example.com", "localhost:3000"]
        assert "The project is created." in text_of(visitor.get(reply.headers["location"]))

    def test_the_plans_limit_is_shown_before_and_enforced(self, visitor, company):
        billing.change_plan(company.organization_id, "free")
        visitor.get(path(company, "/new"))
        for number in range(10):
            make_project(company, f"Shop {number}")
        assert visitor.press("Create the project", fill={"Name": "Eleventh"}).status == 402
        for at in ("/new", ""):
            assert "the most that the Free plan includes" in text_of(visitor.get(path(company, at)))
            assert not visitor.offers("Create the project")


class TestSettings:
    def test_each_form_changes_its_part_and_leads_to_the_settings(self, visitor, company, project):
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
        assert (after.consent.branding, after.primary_website.origin) == ("none", "www.example.org")
        assert {*after.trusted_origins} == {"example.com", "www.example.org", "*.example.org"}
        visitor.press("Remove the website", near="www.example.org")
        assert "www.example.org" not in stored(project).trusted_origins

    def test_a_branding_that_the_plan_lacks_names_whom_to_ask(self, visitor, company, project):
        visitor.get(path(company, "/shop/settings"))
        visitor.press("Save", near="Name in the banner", fill={"Name in the banner": "No name"})
        billing.change_plan(company.organization_id, "starter")
        shown = visitor.get(path(company, "/shop/settings"))
        assert "that takes the Pro plan or higher. To change the plan" in text_of(shown)
        assert '<option value="none" disabled>' in shown.text
        assert visitor.press("Save", near="Description").status == 303
        assert stored(project).consent.branding == "none"  # applies again after an upgrade
        reply = visitor.press("Save", near="Name in the banner", forged={"branding": "none"})
        assert (reply.status, "To change the plan" in text_of(reply)) == (402, True)

    def test_a_member_changes_what_the_api_allows_and_removes_nothing(self, browser, company, project, world):
        browser.signed_in(world.member(company).user_id)
        shown = browser.get(path(company, "/shop/settings"))
        assert "Admins and owners can remove websites." in text_of(shown)
        assert "Admins and owners can delete the project." in text_of(shown)
        assert browser.press("Add", fill={"Add websites": "a.example.net"}).status == 303
        assert not browser.offers("Remove the website")
        assert browser.get(path(company, "/shop/delete")).status == 403


class TestDelete:
    def test_the_typed_name_deletes_the_project(self, visitor, company, project):
        visitor.get(path(company, "/shop/delete"))
        reply = visitor.press("Delete this project", fill={"Name of the project": " Shop "})
        assert (reply.status, reply.headers["location"]) == (303, path(company, "?done=deleted"))
        with pytest.raises(projects.UnknownProject):
            stored(project)
        assert "The project is deleted." in text_of(visitor.get(reply.headers["location"]))


class TestVendors:
    def test_an_admin_decides_about_a_vendor_and_sees_the_decision(self, visitor, company, project):
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

    def test_a_vendor_of_the_code_shows_where_it_is_and_whether_it_waits(self, visitor, company, project):
        places = (VendorPlace(HOSTILE, False), VendorPlace("b.js", True), VendorPlace("package.json", package="hj"))
        use = CodeUse("rep_1", "shop", "scn_1", "2026-03-04T05:00:00.000Z", "https://github.com/acme/shop/blob/1f")
        found = {"hotjar": FoundVendor("Hotjar", "session-replay", places)}
        record_uses(project.project_id, use, found, lambda _: True)
        shown = visitor.get(path(company, "/shop/vendors"))
        assert f"In shop, as of the scan of March 4, 2026 : {HOSTILE} doesn't wait for consent" in text_of(shown)
        assert "b.js waits for consent package.json names hj" in text_of(shown)
        assert "Hotjar Undecided Before consent Session replay" in text_of(shown)
        assert "https://github.com/acme/shop/blob/1f/b.js" in shown.text
        gone = use._replace(scan_id="scn_2", scanned_at="2026-03-05T05:00:00.000Z")
        record_uses(project.project_id, gone, {}, lambda _: True)
        shown = text_of(visitor.get(path(company, "/shop/vendors")))
        assert "The scan of March 5, 2026 no longer found it in shop." in shown
        assert "Before consent" not in shown

    def test_vendors_are_listed_in_pages(self, visitor, company, project, person, monkeypatch):
        monkeypatch.setattr("dashboard.projects.pages.VENDORS_PER_PAGE", 2)
        for vendor in ("heap", "hotjar", "segment"):
            vendors.decide_vendor(project, vendor, "approved", person.user_id)
        first = path(company, "/shop/vendors")
        seen = [it for page in pages_of(visitor, first) for it in re.findall(r"<h2>([a-z]+)</h2>", page.text)]
        assert seen == ["heap", "hotjar", "segment"]
        assert visitor.get(f"{first}?after=%F0%9F").status == 400


def test_the_consent_code_uses_the_instances_own_address(visitor, company, project, monkeypatch):
    regions = parse_regions("eu-central|Frankfurt|https://consent.example.com")
    monkeypatch.setitem(settings.__dict__, "regions", regions)
    shown = visitor.get(path(company, "/shop/consent"))
    assert f"backendURL: 'https://consent.example.com/{project.consent.instance_id}'" in text_of(shown)
    monkeypatch.setitem(settings.__dict__, "regions", parse_regions("us-east|Virginia"))
    offline = text_of(visitor.get(path(company, "/shop/consent")))
    assert "mode: 'offline'" in offline
    assert f"https://api.assent.test/v1/consent-instances/{project.consent.instance_id}" in offline
    assert "Region eu-central" in offline
    assert "everything is stored in the AWS region eu-central-1" in offline
    assert SNIPPETS.read_text() == describe_snippets(), "run python -m scripts.rule_texts"


def test_a_project_named_like_a_page_has_another_slug_and_audits_are_shown(visitor, company, project):
    assert make_project(company, "New").slug == "new-project"
    assert "New" in text_of(visitor.get(path(company, "/new-project")))
    add_audits(project)
    assert "1 audit" in text_of(visitor.get(path(company, "/shop/settings")))
    assert "Audited" in text_of(visitor.get(path(company, "/shop")))

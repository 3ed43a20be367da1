"""GET /organizations/{organizationSlug}/projects/{projectSlug} and its /consent: the targets of `dashboardUrl`."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from controlplane.billing import store as billing
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.settings import settings
from controlplane.projects import audits
from tests.support.browser import Browser, text_of
from tests.support.cleanup import finish_deletions
from tests.support.each import each
from tests.support.world import Company, Person, World

PAGES = pytest.mark.parametrize("below", ["", "/consent"])


@pytest.fixture
def company(world: World, person: Person) -> Company:
    return world.company(owner=person, plan="pro")


def created(browser: Browser, company: Company, **fields: object) -> dict:
    body = {"name": "Shop", "region": "eu-central", "websites": ["https://shop.example.com", "*.example.org"], **fields}
    return browser.api.post("/v1/projects", company.owner.token, json_body=body).data


def path_of(address: str) -> str:
    return urlsplit(address).path


def rename(browser: Browser, company: Company, project: dict, name: str) -> None:
    path = f"/v1/projects/{project['id']}"
    assert browser.api.patch(path, company.owner.token, json_body={"projectName": name}).status == 200


def addresses_in(value: Any) -> list[str]:
    """Returns every `dashboardUrl` and `dashboardURL` in the response, at any depth."""
    if isinstance(value, list):
        return [address for item in value for address in addresses_in(item)]
    if not isinstance(value, dict):
        return []
    own = [item for name, item in value.items() if name.lower() == "dashboardurl"]
    return own + [address for item in value.values() for address in addresses_in(item)]


class TestShown:
    def test_the_dashboard_urls_of_a_response_lead_to_the_project_and_its_consent(self, visitor, company):
        project = created(visitor, company)
        told = visitor.api.get(f"/v1/projects/{project['id']}", company.owner.token).data
        consent = told["products"]["consent"]
        for address, words in (
            (told["dashboardUrl"], ("Shop", project["id"], "Europe (Frankfurt)", "shop.example.com Primary")),
            (
                consent["dashboardURL"],
                (consent["instanceId"], consent["branding"], f"version {settings.consent_runtime_version}"),
            ),
        ):
            reply = visitor.get(path_of(address))
            for text in (*words, "*.example.org"):
                assert text in text_of(reply)
            assert f'href="{path_of(told["consent"]["dashboardUrl"])}"' in reply.text

    def test_each_tab_leads_to_its_page(self, visitor: Browser, company: Company):
        visitor.get(path_of(created(visitor, company)["dashboardUrl"]))
        for tab, heading in (
            ("Consent", "Consent of Shop"),
            ("Vendors", "Vendors of Shop"),
            ("Settings", "Settings of Shop"),
            ("Overview", "Shop"),
        ):
            reply = visitor.press(tab, near="Consent Vendors")
            assert (reply.status, f"<h1>{heading}</h1>" in reply.text) == (200, True)

    def test_the_consent_page_tells_consent_entries_from_audited_websites(self, visitor: Browser, company: Company):
        project = created(visitor, company, websites=["shop.example.com", "audited.example.com"])
        audits.create_audit(ProjectId.stored(project["id"]), project["websites"][1]["id"], 7)
        visitor.api.patch(
            f"/v1/projects/{project['id']}",
            company.owner.token,
            json_body={"consent": {"trustedOrigins": ["shop.example.com"]}},
        )
        words = text_of(visitor.get(path_of(project["dashboardUrl"]) + "/consent"))
        others = "Consent also loads on these audited websites: audited.example.com."
        assert f"Trusted origins shop.example.com {others}" in words
        assert "audited.example.com Domain Audited" in text_of(visitor.get(path_of(project["dashboardUrl"])))

    def test_the_consent_page_shows_the_branding_that_the_plan_allows(self, visitor: Browser, company: Company):
        project = created(visitor, company, consent={"branding": "none"})
        page = path_of(project["consent"]["dashboardUrl"])
        for plan, branding in (("pro", "none"), ("starter", "assent"), ("pro", "none")):
            billing.change_plan(company.organization_id, plan)
            assert f"Branding {branding} " in text_of(visitor.get(page))

    @PAGES
    def test_texts_of_users_are_escaped(self, visitor: Browser, company: Company, below: str):
        name = "<script>alert(1)</script>{{7*7}}"
        project = created(visitor, company, name=name)
        visitor.api.patch(f"/v1/projects/{project['id']}", company.owner.token, json_body={"description": name})
        reply = visitor.get(path_of(project["dashboardUrl"]) + below)
        assert "&lt;script&gt;" in reply.text
        assert "{{7*7}}" in text_of(reply)


@PAGES
class TestRenamed:
    def test_a_former_address_redirects_to_the_current_one_with_its_query(self, visitor: Browser, company, below):
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

    def test_a_new_project_with_the_former_slug_is_shown_instead(self, visitor: Browser, company: Company, below: str):
        project = created(visitor, company)
        rename(visitor, company, project, "Store")
        created(visitor, company, websites=["https://new.example.com"])
        for _ in range(2):
            reply = visitor.get(path_of(project["dashboardUrl"]) + below)
            assert (reply.status, "new.example.com" in reply.text) == (200, True)
            rename(visitor, company, project, "Shop")

    def test_others_and_everybody_after_the_deletion_get_404_for_a_former_slug(self, visitor, world, company, below):
        project = created(visitor, company)
        rename(visitor, company, project, "Store")
        addresses = [f"/organizations/{company.slug}/projects/{slug}{below}" for slug in ("shop", "store", "x")]
        stranger = Browser(visitor.api).signed_in(world.person().user_id)
        replies = [stranger.get(address) for address in addresses]
        assert ({reply.status for reply in replies}, len({reply.text for reply in replies})) == ({404}, 1)
        visitor.api.delete(f"/v1/projects/{project['id']}", company.owner.token)
        assert {visitor.get(address).status for address in addresses} == {404}
        finish_deletions()
        assert {visitor.get(address).status for address in addresses} == {404}


class TestAddresses:
    def test_every_dashboard_url_of_every_response_is_a_page(self, visitor: Browser, company: Company):
        api, token = visitor.api, company.owner.token
        project = created(visitor, company)
        path = f"/v1/projects/{project['id']}"
        older = {"name": "Blog", "region": "eu-central", "consent": {"trustedOrigins": ["https://blog.example.com"]}}
        replies = [
            api.get("/v1/projects", token),
            api.get(path, token),
            api.get(f"{path}/consent", token),
            api.post("/v1/projects", token, json_body=older),
            api.patch(path, token, json_body={"projectName": "Store"}),
            api.get(path, token),
        ]
        addresses = {address for reply in replies for address in addresses_in(reply.body)}
        assert {path_of(address).rpartition("/projects/")[2] for address in addresses} == {
            *("shop", "shop/consent", "store", "store/consent", "blog", "blog/consent"),
        }
        for address in addresses:
            reply = visitor.get(path_of(address))
            if reply.status == 307:
                reply = visitor.get(reply.headers["location"])
            assert reply.status == 200, address


@PAGES
@each("slug", ["nothing", "SHOP", "%23", "x" * 2000, "%C3%A9", "%F0%9F%98%80"])
def test_an_invalid_slug_returns_404(visitor: Browser, company: Company, slug: str, below: str):
    created(visitor, company)
    assert visitor.get(f"/organizations/{company.slug}/projects/{slug}{below}").status == 404
    assert visitor.get(f"/organizations/{slug}/projects/shop{below}").status == 404

"""The links of the pages, followed from the overview as a browser does."""

import re
from html import unescape
from urllib.parse import urljoin

from controlplane.platform.core.urls import public_base_url
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser
from tests.support.operations import operations_at
from tests.support.world import Person, World


def crawl(browser: Browser, start: str = "/") -> set[str]:
    """Follows every link to this service and checks that it is a page, and that each form has a route.

    Returns the paths.
    """
    waiting, seen = [start], {start}
    while waiting:
        target = waiting.pop()
        reply = browser.get(target)
        assert reply.status == 200, target
        for action in re.findall(r'<form [^>]*method="post" action="([^"?]*)', reply.text):
            assert "POST" in {operation.method for operation in operations_at(unescape(action))}, action
        for link in re.findall(r'<a [^>]*href="([^"]*)"', reply.text):
            path = urljoin(target, unescape(link).removeprefix(public_base_url())).partition("#")[0]
            # The reference's own links are checked with its files.
            if path.startswith("/") and path not in seen and not target.startswith("/docs"):
                seen.add(path)
                waiting.append(path)
    return seen


def test_every_link_of_a_person_without_an_organization_leads_to_a_page(visitor: Browser):
    seen = crawl(visitor)
    assert {"/organizations", "/organizations/new", "/invitations", "/device", "/docs"} <= seen


def test_every_link_of_a_member_leads_to_a_page(visitor: Browser, world: World, person: Person):
    company = world.company(owner=person)
    project = make_project(company)
    world.invitation(world.company(), person.email)
    repository = world.connected_repository(company)
    scan = make_scan(repository, issues=[make_issue(number) for number in range(1, 6)])
    own = f"/organizations/{company.slug}"
    shop = f"{own}/projects/{project.slug}"
    pages = {own, shop, f"{own}/projects/{repository.name}", f"{own}/scans/{scan.scan_id}", "/invitations/blocked"}
    pages |= {f"{own}/{page}" for page in ("settings", "delete", "keys", "members", "billing", "projects/new")}
    pages |= {f"{shop}/{page}" for page in ("consent", "settings", "vendors", "delete")}
    assert pages <= crawl(visitor)


def test_messages_send_callers_to_places_that_exist(api: Api, visitor: Browser, world: World):
    nowhere = world.person()
    message = api.get("/v1/projects", nowhere.token).error["message"]
    (page,) = re.findall(r"https://[^/]+(/\S+)", message)
    assert visitor.get(page).status == 200
    assert api.post("/v1/organizations", nowhere.token, json_body={"name": "Acme"}).status == 201
    assert api.get("/v1/projects", nowhere.token).status == 200
    several = world.company().owner
    saved = world.company(owner=several)
    world.clear_default(several)
    (detail,) = api.get("/v1/projects", several.token).error["details"]
    method, path = re.findall(r"(PUT) (\S+)\.", detail["message"])[0]
    assert api.call(method, path, several.token, json_body={"organizationId": saved.organization_id}).status == 200
    assert api.get("/v1/projects", several.token).status == 200

"""Rules for every page, generated from the route table, and the header and links of every page."""

import re
import secrets
from dataclasses import replace
from html import unescape
from urllib.parse import quote, urljoin

from controlplane.access import web_session
from controlplane.findings import conversations, inbox
from controlplane.findings.fixes import Edit, Fix
from controlplane.findings.items import Evidence
from controlplane.platform.core import tokens
from controlplane.platform.core.errors import RouteNotFound
from controlplane.platform.core.urls import public_base_url
from controlplane.platform.table import keys
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Table, Update, table
from controlplane.scans.items import Coverage, CoveredKind
from controlplane.scans.reads import Inventory, UsedVendor, VendorPackage, stored_leg
from dashboard import navigation
from tests.functional.dashboard.conftest import HOSTILE, ISSUES, change
from tests.functional.projects.builders import make_project
from tests.support.api import FORM, Reply
from tests.support.audit_reports import complete_audit, finding, vendor, visit
from tests.support.audits import make_scan
from tests.support.browser import Browser, text_of
from tests.support.cold_start import loaded_by
from tests.support.each import each
from tests.support.endpoints import endpoint
from tests.support.operations import Operation, operations, operations_at
from tests.support.table import PREPARED
from tests.support.template import resources
from tests.support.world import table_dump, uncounted

ASKED = [(operation, operation.requires_session) for operation in operations()]
CLOSED = [operation for operation, requires in ASKED if requires is not None and requires.signed_in]
FORMS = [operation for operation, requires in ASKED if requires is not None and requires.form and requires.signed_in]
SHOWN = [operation for operation in CLOSED if operation.method == "GET"]


def _address(operation: Operation) -> str:
    return re.sub(r"\{\w+\}", "acme", operation.path)


def _named(operation: Operation) -> str:
    return operation.name


def _submit(visitor: Browser, operation: Operation, body: bytes) -> Reply:
    headers = {"Content-Type": FORM, "Cookie": f"{web_session.cookie_name('session')}={visitor.secret}"}
    return visitor.api.call("POST", operation.path, raw_body=body, headers=headers)


def test_a_form_with_another_token_media_type_or_unreadable_fields_is_refused(visitor):
    """Every form is read by the same code, so one stands for all of them."""
    form, many = FORMS[0], b"&".join(b"a%d=1" % number for number in range(33))
    for token in ("", "0" * 64, "é", "\u2028"):
        assert visitor.forge(form.path, {"form_token": token}).status == 403
    for body in (b"form_token=%ff", b"form_token=\xff", b"a=%00&b=1", b"a=1&a=2", many):
        for sent in (body, f"form_token={visitor.form_token}&".encode() + body):
            assert _submit(visitor, form, sent).status == 400, body
    for media_type in ("text/plain", "multipart/form-data; boundary=x", ""):
        assert visitor.forge(form.path, {}, **{"Content-Type": media_type}).status == 415


@each("operation", SHOWN, ids=_named)
class TestSignedOut:
    def test_a_page_redirects_to_sign_in_and_back(self, operation, browser):
        reply = browser.get(_address(operation))
        assert reply.status == 303
        assert reply.headers["location"] == f"/sign-in?return_to={_address(operation).replace('/', '%2F')}"
        # A form that filters can't be redirected to the sign-in's origin.
        reply = browser.get(f"{_address(operation)}?q=x", **{"Sec-Fetch-Site": "same-origin"})
        assert (reply.status, "Your session has ended" in text_of(reply)) == (401, True)
        assert '<meta http-equiv="refresh" content="0; url=/sign-in?return_to=' in reply.text

    def test_nothing_but_the_sessions_own_cookie_works(self, operation, visitor, person, world):
        name, secret, address = web_session.cookie_name("session"), visitor.secret, _address(operation)
        modified = secret[:-1] + ("0" if secret[-1] != "0" else "1")
        for other in (person.token, world.key(world.company(owner=person)), modified, "x", "assent_st_x"):
            visitor.cookies = {name: other}
            assert visitor.get(address).status == 303
        # Over TLS, a cookie without its prefix is ignored.
        assert Browser(visitor.api, {"assent-session": secret}).get(address).status == 303
        assert visitor.api.get(address, person.token).status == 303


@each("operation", FORMS, ids=_named)
class TestForm:
    def test_a_form_without_a_session_returns_401_and_changes_nothing(self, operation, browser):
        before = table_dump()
        reply = browser.forge(operation.path, {"form_token": "x"})
        assert (reply.status, "Your session has ended" in text_of(reply)) == (401, True)
        assert table_dump() == before
        assert browser.forge(operation.path, {"a": "x" * 1_048_577}).status == 413

    def test_a_form_needs_the_token_of_its_own_session(self, operation, visitor, person, world):
        others = [Browser(visitor.api).signed_in(it.user_id).form_token for it in (world.person(), person)]
        before = uncounted()
        for token in ("x", None, *others):
            assert visitor.forge(operation.path, {"form_token": token}).status == 403
        assert uncounted() == before

    def test_each_session_is_rate_limited(self, operation, visitor):
        key = keys.user_token(tokens.digest(visitor.secret))
        table.update(Update(key, "SET #rateLimit = :none", values={"none": 0}), PREPARED)
        assert visitor.forge(operation.path).status == 429

    def test_a_get_request_doesnt_submit_a_form(self, operation, visitor):
        before = uncounted()
        reply = visitor.get(f"{operation.path}?form_token={visitor.form_token}", Accept="text/html")
        # 404: the page of an organization that the visitor doesn't belong to. 303: to the page that has the form.
        assert reply.status in {200, 303, 404}
        assert uncounted() == before


def test_each_page_has_another_token_and_one_without_salt_is_refused(visitor, monkeypatch):
    monkeypatch.setattr("controlplane.access.web_session.token_hex", secrets.token_hex)
    given = []
    for _ in range(2):
        visitor.get("/organizations")
        given.append(visitor.sends("Sign out")["form_token"])
    assert given[0] != given[1]
    assert visitor.forge("/organizations", {"form_token": given[0]}).status == 404
    unsalted = tokens.keyed_digest("form", visitor.secret)
    for token in (unsalted, given[0][:16] + unsalted):
        assert visitor.forge("/organizations", {"form_token": token}).status == 403


class TestWhatIsShown:
    def test_text_from_a_link_or_a_form_is_escaped_and_its_page_not_compressed(self, visitor):
        """Otherwise, an attacker who sends the link and observes the response size could guess the form's token."""
        least = resources("AWS::Serverless::Api")["Api"]["Properties"]["MinimumCompressionSize"]
        for code in (HOSTILE, "' onfocus='alert(1)", "x" * 4000, "\N{PILE OF POO}" * 300):
            page = visitor.get(f"/device?user_code={quote(code)}")
            assert (page.status, len(page.text.encode()) < least) == (200, True)
        reply = visitor.forge("/device", {"user_code": HOSTILE})
        assert (reply.status, "&lt;script&gt;" in reply.text) == (404, True)

    def test_an_error_page_doesnt_reveal_the_cause(self, visitor, monkeypatch):
        def broken(*_args, **_options):
            raise RuntimeError("the cause")

        monkeypatch.setattr(Table, "query", broken)
        reply = visitor.get("/")
        assert (reply.status, "the cause" in reply.text) == (500, False)


class TestAssets:
    @each(
        ("pattern", "media_type"),
        [
            (r'<link rel="stylesheet" href="([^"]+)">', "text/css"),
            (r'<script src="([^"]+)" defer></script>', "text/javascript"),
        ],
    )
    def test_an_asset_is_served_under_its_hashed_name_and_cached(self, browser, pattern, media_type):
        (address,) = re.findall(pattern, browser.get("/").text)
        reply = browser.get(address)
        assert reply.status == 200
        assert reply.headers["content-type"] == f"{media_type}; charset=utf-8"
        assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert ("url(" in reply.text, "@import" in reply.text) == (False, False)

    @each(
        ("selector", "variable", "strongest"),
        [
            (".badge.good", "good", "green"),
            (".badge.bad", "problem", "red"),
            (".badge.p0", "p0", "red"),
            (".tone-problem", "tone-problem", "red"),
            (".tone-accent", "tone-accent", "green"),
        ],
    )
    def test_good_is_green_and_what_is_urgent_or_failed_is_red(self, browser, selector, variable, strongest):
        (address,) = re.findall(r'<link rel="stylesheet" href="([^"]+)">', browser.get("/").text)
        style = browser.get(address).text
        (rule,) = re.findall(rf"(?m)^{re.escape(selector)} \{{([^}}]*)", style)
        assert re.search(rf"(^|\s)(color|--tone): var\(--{variable}\)", rule)
        values = re.findall(rf"--{variable}: #(..)(..)(..);", style)
        assert len(values) == 2  # in the light and in the dark scheme
        for channels in values:
            assert ("red", "green", "blue")[channels.index(max(channels))] == strongest

    @each("name", ["pages.css", "style.css", "pages.0000000000000000.css", "live.js", "..", "app.py", "pages.css%00"])
    def test_no_other_file_is_served(self, browser, name):
        assert browser.get(f"/assets/{name}").status == 404


def header(browser: Browser, path: str) -> str:
    return browser.get(path).text.partition("<main")[0]


def test_each_page_marks_itself_alone_and_lists_all_organizations(visitor, person, company, world):
    other = world.company(owner=person, name="Birch")
    shown = header(visitor, f"/organizations/{company.slug}")
    assert f'href="/organizations/{company.slug}" aria-current="true"' in shown
    assert f'href="/organizations/{other.slug}"' in shown
    linked = re.findall(r'<a href="([^"]+)"', shown.partition('<nav class="tabs"')[2])
    assert f"/organizations/{company.slug}/repositories" in linked
    for path in (*linked, *(tab.path for tab in navigation.list_account_tabs()), "/", "/organizations"):
        assert re.findall(r'<a [^>]*href="([^"]+)" aria-current="page"', header(visitor, path)) == [path]
    signed_out = Browser(visitor.api).get("/").text
    assert ('href="/sign-in"' in signed_out, "Sign out" in signed_out) == (True, False)


class TestErrors:
    def test_an_unknown_address_is_a_page_in_a_browser_and_in_the_apis_format_for_others(self, visitor, company):
        for path in ("/nope", "/account/nope", f"/organizations/{company.slug}/nope", "/organizations/nope"):
            reply = visitor.get(path, Accept="text/html,*/*;q=0.8")
            assert (reply.status, "There is no such page" in text_of(reply)) == (404, True)
            assert visitor.offers("Sign out")
        for path in ("/nope", "/account/nope", f"/organizations/{company.slug}/nope"):
            for accepted in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
                reply = visitor.get(path, **accepted)
                assert (reply.status, reply.code) == (404, "NOT_FOUND")
                assert reply.error["message"] == RouteNotFound.message
        reply = visitor.forge("/organizations", {"form_token": "x"})
        assert (reply.status, "This form has expired" in text_of(reply)) == (403, True)
        assert visitor.offers("Sign out")
        reply = Browser(visitor.api).get("/nope", Accept="text/html")
        assert (reply.status, "<details" in reply.text) == (404, False)

    def test_each_address_of_a_form_leads_a_browser_to_a_page(self, visitor):
        pages = {operation.path for operation in operations() if operation.method == "GET"}
        forms = {it.path for it in operations() if it.requires_session is not None and it.method == "POST"} - pages
        for form in {re.sub(r"\{\w+\}", "x", path) for path in forms if not path.startswith("/invitations/")}:
            reply = visitor.get(f"{form}?x=1", Accept="text/html")
            assert (reply.status, reply.headers.get("location")) == (303, form.rpartition("/")[0] or "/"), form
        # The page of an invitation says that there is no such invitation.
        assert visitor.get("/invitations/accept", Accept="text/html").status == 200

    def test_crawlers_get_a_file_and_browsers_an_icon(self, browser):
        robots, icon = browser.get("/robots.txt"), browser.get("/favicon.ico")
        assert robots.status == icon.status == 200
        assert "Disallow: /\n" in robots.text
        assert icon.headers["content-type"] == "image/svg+xml"
        assert icon.text.startswith("<svg")


def test_sign_in_libraries_are_imported_at_the_first_sign_in():
    assert loaded_by("dashboard.app", {"authlib", "cryptography", "joserfc", "requests"}) == set()


def crawl(browser: Browser, start: str = "/") -> set[str]:
    """Follows every link to this service and checks that it is a page, and that each form has a route.

    Returns the paths.
    """
    waiting, seen = [start], {start}
    while waiting:
        target = waiting.pop()
        reply = browser.get(target)
        assert reply.status == 200, target
        if reply.headers["content-type"].startswith("text/html"):
            # check_page checks that it has no other script, and this that nothing renders its text as a template.
            assert ("<script>alert" in reply.text, "673229" in reply.text) == (False, False), target
        for action in re.findall(r'<form [^>]*method="post" action="([^"?]*)', reply.text):
            assert "POST" in {operation.method for operation in operations_at(unescape(action))}, action
        for link in re.findall(r'<a [^>]*href="([^"]*)"', reply.text):
            path = urljoin(target, unescape(link).removeprefix(public_base_url())).partition("#")[0]
            # The reference's own links are checked with its files.
            if path.startswith("/") and path not in seen and not target.startswith("/docs"):
                seen.add(path)
                waiting.append(path)
    return seen


def test_every_link_of_a_person_without_an_organization_leads_to_a_page(visitor):
    seen = crawl(visitor)
    assert {"/organizations", "/organizations/new", "/invitations", "/device", "/docs"} <= seen


def test_every_link_of_a_member_leads_to_a_page_that_runs_no_text_of_others(browser, world):
    person = world.person(name=HOSTILE)
    company, inviting = (world.company(name=HOSTILE, owner=it) for it in (person, world.person(name=HOSTILE)))
    world.invitation(inviting, person.email)
    world.member(company, person=world.person(name=HOSTILE))
    world.key(company, HOSTILE)
    webhook = endpoint(company, name=HOSTILE)
    project, repository = make_project(company, HOSTILE), world.connected_repository(company, name="shop")
    texts = dict.fromkeys(("title", "description", "remediation"), HOSTILE)
    fix = Fix(HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), (Edit(HOSTILE, 1, HOSTILE, HOSTILE * 2),))
    place = replace(ISSUES[0].location, path=HOSTILE, snippet=HOSTILE)
    issues = [replace(ISSUES[0], **texts, location=place, fix=fix), *ISSUES[1:]]
    scan = make_scan(repository, again="full", access="full", issues=issues)
    packages = (VendorPackage(HOSTILE, HOSTILE, "x"),)
    used = UsedVendor(id="posthog", name=HOSTILE, category="analytics", packages=packages, hosts=(HOSTILE,))
    table.put(stored_leg(scan.scan_id, Inventory(files=1, vendors=(used,))), PREPARED)
    coverage = Coverage(1, 1, {HOSTILE: 1}, (CoveredKind(HOSTILE, 0, 2),), HOSTILE)
    change(scan, branch=HOSTILE, rootDirectory=HOSTILE, repositoryName=HOSTILE, coverage=to_map(coverage))
    change(repository, name=HOSTILE, owner=HOSTILE)
    banner = {"library": HOSTILE, "isShown": True, "accepts": True, "refuses": True, "buttons": [HOSTILE]}
    seen = visit(refused={HOSTILE: HOSTILE}, answeredBy=HOSTILE)
    reported = finding(title=HOSTILE, summary=HOSTILE)
    run = complete_audit(project, reported, banner=banner, vendors=[vendor(name=HOSTILE)], visits=[seen])
    evidence, references = (Evidence(HOSTILE, None, HOSTILE, 1, 1, HOSTILE),), (f"https://example.com/{HOSTILE}",)
    sent = {**texts, "summary": HOSTILE, "evidence": evidence, "references": references, "fix": fix}
    item = world.finding(company, repository, **sent)
    item = inbox.change_status(item, "accepted", item.version, person.user_id, HOSTILE)
    conversations.add_comment(item, HOSTILE, person.user_id, {})
    own = f"/organizations/{company.slug}"
    shop = f"{own}/projects/{project.slug}"
    pages = {own, shop, f"{own}/projects/shop", f"{own}/scans/{scan.scan_id}", f"{own}/inbox/{item.item_id}"}
    pages |= {f"{own}/{page}" for page in ("settings", "delete", "keys", "members", "billing", "projects/new")}
    pages |= {f"{shop}/{page}" for page in ("consent", "settings", "vendors", "delete", "audits")}
    pages |= {f"{shop}/audits/{run.audit_id}/runs/{run.run_id}", f"{own}/webhooks/{webhook.webhook_id}"}
    assert pages | {"/", "/invitations", "/invitations/blocked", "/account"} <= crawl(browser.signed_in(person.user_id))


def test_messages_send_callers_to_places_that_exist(api, visitor, world):
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

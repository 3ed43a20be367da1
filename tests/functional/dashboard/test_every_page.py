"""Rules for every page, generated from the route table: sessions, forms, rejections, and other users' data."""

import re
import secrets
from urllib.parse import quote

from controlplane.access import web_session
from controlplane.platform.core import tokens
from controlplane.platform.table import keys
from controlplane.platform.table.table import Table, Update, table
from tests.functional.dashboard.conftest import HOSTILE
from tests.support.api import FORM, Reply
from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.operations import Operation, operations
from tests.support.table import PREPARED
from tests.support.template import resources
from tests.support.world import table_dump, uncounted

ASKED = [(operation, operation.requires_session) for operation in operations()]
CLOSED = [operation for operation, requires in ASKED if requires is not None and requires.signed_in]
FORMS = [operation for operation, requires in ASKED if requires is not None and requires.form]
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

    def test_an_unreadable_form_is_refused(self, operation, visitor):
        assert _submit(visitor, operation, b"form_token=%ff").status == 400
        assert visitor.forge(operation.path, {}, **{"Content-Type": "application/json"}).status == 415

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
    def test_names_are_escaped_everywhere(self, browser, world):
        person = world.person(name=HOSTILE)
        browser.signed_in(person.user_id)
        world.company(name=HOSTILE, owner=person)
        inviting = world.company(name=HOSTILE, owner=world.person(name=HOSTILE))
        browser.api.post("/v1/invitations", inviting.owner.token, json_body={"email": person.email, "role": "member"})
        for page in ("/", "/organizations", "/invitations"):
            reply = browser.get(page)  # check_page checks that it has no other script
            assert ("{{739*911}}" in text_of(reply), "&lt;script&gt;" in reply.text) == (True, True)

    def test_text_from_a_link_or_a_form_is_escaped(self, visitor):
        for code in ('"><script>alert(1)</script>', "' onfocus='alert(1)", "x" * 4000):
            reply = visitor.get(f"/device?user_code={quote(code)}")
            assert (reply.status, "<script>alert" in reply.text, len(reply.text) < 5_000) == (200, False, True)
        reply = visitor.forge("/device", {"user_code": HOSTILE})
        assert (reply.status, "&lt;script&gt;" in reply.text) == (404, True)

    def test_a_page_that_shows_text_from_a_link_is_not_compressed(self, visitor):
        """Otherwise, an attacker who sends the link and observes the response size could guess the form's token."""
        page = visitor.get(f"/device?user_code={'%F0%9F%92%A9' * 300}")
        api = resources("AWS::Serverless::Api")["Api"]["Properties"]
        assert len(page.text.encode()) < api["MinimumCompressionSize"]

    def test_only_the_current_page_is_marked_as_current_and_signed_out_users_are_welcomed(self, visitor):
        for page in ("/", "/organizations", "/invitations", "/sessions", "/device"):
            marked = re.findall(r'<a [^>]*href="([^"]+)" aria-current="page">', visitor.get(page).text)
            assert marked == [page]
        shown = Browser(visitor.api).get("/").text
        assert ('href="/sign-in"' in shown, "Sign out" in shown) == (True, False)

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

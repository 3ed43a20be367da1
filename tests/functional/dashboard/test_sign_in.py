"""GET /sign-in, GET /sign-in/callback: the code flow, and the resulting account."""

import base64
import hmac
import json
import re
from collections.abc import Callable
from html import unescape
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import pytest

from controlplane.access import web_session
from controlplane.organizations import store as organizations
from controlplane.platform.core import urls
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from dashboard.access.sign_in import begin_sign_in
from tests.functional.dashboard.issuer import Issuer, _key, callback
from tests.support.api import Reply
from tests.support.browser import Browser, text_of
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.world import get_profile, table_dump


def begin(browser: Browser, query: str = "") -> str:
    """Returns the URL that the browser is redirected to for sign-in."""
    reply = browser.get(f"/sign-in{query}")
    assert reply.status == 303, reply.text
    return reply.headers["location"]


def sign_in(browser: Browser, issuer: Issuer, query: str = "", subject: str = "subject-1") -> Reply:
    return browser.get(callback(issuer.authorize(begin(browser, query), subject)))


def principal(browser: Browser) -> dict:
    return browser.api.get("/v1/me", browser.secret).data["principal"]


def _token(header: dict, claims: dict, sign: Callable[[bytes], bytes]) -> str:
    """Returns a token built by hand."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    signature = base64.urlsafe_b64encode(sign(b".".join(parts))).rstrip(b"=")
    return b".".join([*parts, signature]).decode()


def test_signing_up_begins_at_the_form_for_a_new_account_if_the_issuer_has_one(browser, issuer, monkeypatch):
    for metadata, cognito, path, prompt in (
        ({}, "cognito-idp.", "/authorize", None),
        ({"prompt_values_supported": ["login", "create"]}, "cognito-idp.", "/authorize", ["create"]),
        ({"authorization_endpoint": f"{issuer.url}/oauth2/authorize"}, "127.0.0.1", "/signup", None),
    ):
        issuer.metadata = metadata
        monkeypatch.setattr("dashboard.access.provider._COGNITO", cognito)
        monkeypatch.setattr("dashboard.access.sign_in._providers", {})
        reply = browser.get("/sign-up?return_to=/device")
        sent = urlsplit(reply.headers["location"])
        query = parse_qs(sent.query)
        assert (reply.status, sent.path, query.get("prompt")) == (303, path, prompt)
        assert query["code_challenge_method"] == ["S256"]


class TestFirstSignIn:
    def test_the_first_sign_in_creates_an_account_with_the_identity_and_no_secret(self, browser, issuer):
        issuer.changes = {"email": "Ada@Example.com", "picture": "https://images.example.com/ada.png"}
        reply = sign_in(browser, issuer)
        assert (reply.status, reply.headers["location"]) == (303, "/")
        profile = get_profile("ada@example.com")
        assert (profile.name, profile.image) == ("Ada Lovelace", "https://images.example.com/ada.png")
        me = browser.api.get("/v1/me", browser.secret).data
        assert (me["principal"]["type"], me["principal"]["userId"]) == ("session", profile.user_id)
        assert me["scopes"] == sorted(SCOPES)
        dump = str(table_dump())
        assert [text in dump for text in (issuer.url, browser.secret, "opaque")] == [True, False, False]

    def test_the_first_sign_in_joins_the_account_with_that_address(self, browser, issuer, world):
        person = world.person("ada@example.com")
        sign_in(browser, issuer)
        assert principal(browser) == {"type": "session", "userId": person.user_id, "activeOrganizationId": None}

    @pytest.mark.parametrize("verified", [False, None, "false", 1, "yes"])
    def test_an_unverified_address_is_refused_with_the_next_step(self, browser, issuer, world, verified):
        world.person("ada@example.com")
        before = table_dump()
        issuer.changes = {"email_verified": verified}
        reply = sign_in(browser, issuer)
        assert (reply.status, "Verify it there" in text_of(reply)) == (403, True)
        assert web_session.cookie_name("session") not in browser.cookies
        assert {item["pk"]["S"][:3] for item in table_dump() if item not in before} == {"IP#"}

    @pytest.mark.parametrize(
        ("claims", "name"),
        [
            ({"name": None}, "ada"),
            ({"name": None, "given_name": "Ada", "family_name": "King"}, "Ada King"),
            ({"name": "A\u202eda\nLove\0lace", "picture": "javascript:alert(1)"}, "A da Love lace"),
            ({"name": "x" * 300, "picture": "http://example.com/a.png"}, "x" * 100),
            ({"name": 7, "picture": 7}, "ada"),
            ({"name": "  ", "picture": "https://" + "x" * 3000}, "ada"),
        ],
    )
    def test_only_a_displayable_name_and_an_https_image_are_stored(self, browser, issuer, claims, name):
        issuer.changes = claims
        sign_in(browser, issuer)
        profile = get_profile("ada@example.com")
        assert (profile.name, profile.image) == (name, None)


class TestLaterSignIn:
    def test_a_later_sign_in_reaches_the_same_account_despite_an_unusable_address(self, browser, issuer):
        sign_in(browser, issuer)
        first = principal(browser)["userId"]
        for issuer.changes in (
            {"email": "countess@example.com", "email_verified": False},
            {"email": "countess@ex\u00e4mple.com"},
            {"email": None},
        ):
            assert sign_in(browser, issuer).status == 303
            assert principal(browser)["userId"] == first
        assert get_profile(first).email == "ada@example.com"

    def test_a_later_sign_in_updates_name_and_image_in_every_roster_unless_omitted(self, browser, issuer, world):
        sign_in(browser, issuer)
        old, user_id = browser.secret, principal(browser)["userId"]
        made = [organizations.create_organization(slug, slug, user_id) for slug in ("one", "two")]
        for issuer.changes in ({"name": "Ada King", "picture": "https://images.example.com/new.png"}, {"name": None}):
            sign_in(browser, issuer)
            for item in [keys.user(user_id)] + [keys.member(it.organization_id, user_id) for it in made]:
                stored = table.get(item)
                assert (stored["name"], stored["image"]) == ("Ada King", "https://images.example.com/new.png")
        assert browser.secret != old
        assert browser.api.get("/v1/me", old).status == 401  # the browser's previous session has ended


class TestSession:
    def test_the_cookies_are_unavailable_to_scripts_and_other_sites(self, browser, issuer, monkeypatch):
        reply = sign_in(browser, issuer)
        for name in ("__Host-assent-session=", "__Host-assent-user="):
            (cookie,) = [cookie for cookie in reply.cookies if cookie.startswith(name)]
            assert cookie.split("; ")[1:] == ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Lax", "Secure"]
        # Without TLS, browsers refuse the prefix.
        monkeypatch.setitem(settings.__dict__, "dashboard_base_url", "http://127.0.0.1:3000")
        assert web_session.cookie("session", "x", 5) == "assent-session=x; Path=/; Max-Age=5; HttpOnly; SameSite=Lax"

    def test_a_session_shows_its_browser_and_the_header_is_never_stored(self, browser, issuer):
        for sent, words in (("Mozilla/5.0 (X11; Linux) Firefox/140.0", "Browser Firefox on Linux"), ("x", "")):
            answer = callback(issuer.authorize(begin(browser), "subject-1"))
            browser.get(answer, **{"User-Agent": sent})
            assert f"Client dashboard {words} IP address".replace("  ", " ") in text_of(browser.get("/sessions"))
        assert "Mozilla" not in str(table_dump())

    def test_a_session_shows_its_client_address_and_expires_after_12_hours(self, browser, issuer, now):
        browser.api.source_ip = "203.0.113.9"
        sign_in(browser, issuer, "?return_to=/sessions")
        text = text_of(browser.get("/sessions"))
        assert ("Web session This session" in text, "IP address 203.0.113.9" in text) == (True, True)
        now.advance(12 * 3600 - 1)
        assert browser.get("/organizations").status == 200
        now.advance(1)
        assert browser.get("/organizations").status == 303
        assert "Sign in" in text_of(browser.get("/"))


class TestReturn:
    @each(
        ("target", "returns"),
        [
            ("/device?user_code=BCDF-GHJK", True),
            *((own, True) for own in ("/", "/device", "/invitations", "/organizations")),
            *((to, False) for to in ("https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example")),
            *((to, False) for to in ("javascript:alert(1)", "/%2f/evil.example", "/device@evil.example")),
            *((to, False) for to in ("/sign-in", " /device", "", "/assets/../device", "/device\n")),
            ("/device?user_code=BCDF-GHJK&x=1", False),
            ("/device?user_code=BCDF-GHJK\r\nSet-Cookie: a=b", False),
        ],
    )
    def test_sign_in_returns_only_to_pages_of_this_service(self, target, returns, browser, issuer):
        reply = sign_in(browser, issuer, f"?return_to={quote(target, safe='')}")
        assert reply.headers["location"] == (target if returns else "/")

    def test_a_page_that_requires_sign_in_redirects_there_and_back_below_the_stage(self, browser, issuer, monkeypatch):
        location = browser.get("/device?user_code=BCDF-GHJK").headers["location"]
        assert location == "/sign-in?return_to=%2Fdevice%3Fuser_code%3DBCDF-GHJK"
        first = issuer.authorize(begin(browser, location.removeprefix("/sign-in")))
        second = issuer.authorize(begin(browser, "?return_to=%2Finvitations"))  # in another tab
        assert browser.get(callback(first)).headers["location"] == "/device?user_code=BCDF-GHJK"
        assert browser.get(callback(second)).headers["location"] == "/invitations"
        assert set(browser.cookies) == {web_session.cookie_name("session"), web_session.cookie_name("user")}
        monkeypatch.setitem(settings.__dict__, "dashboard_base_url", "https://x.example.com/live")
        monkeypatch.setattr(issuer, "redirect_uri", "https://x.example.com/live/sign-in/callback")
        other = Browser(browser.api)
        assert other.get("/device").headers["location"] == "/live/sign-in?return_to=%2Fdevice"
        assert sign_in(other, issuer, "?return_to=%2Fdevice").headers["location"] == "/live/device"
        assert 'action="/live/device"' in other.get("/device").text


class TestRefusedCallback:
    def _answer(self, browser: Browser, issuer: Issuer, **changes: str | None) -> Reply:
        answer = {**issuer.authorize(begin(browser)), **changes}
        return browser.get(callback({name: value for name, value in answer.items() if value is not None}))

    @each(
        "changes",
        [
            {"state": "x" * 43},
            {"state": "short"},
            {"state": "x" * 43 + "\n"},
            {"state": None},
            {"code": "guess"},
            {"code": None},
            {"iss": "https://evil.example"},
            {"error": "access_denied"},
            {"error": "<script>alert(1)</script>"},
        ],
    )
    def test_a_callback_with_another_state_returns_400(self, browser, issuer, changes):
        reply = self._answer(browser, issuer, **changes)
        assert reply.status == 400
        assert "again" in text_of(reply)
        assert "alert" not in reply.text
        assert web_session.cookie_name("session") not in browser.cookies

    def test_only_the_same_browser_can_finish_the_sign_in_once_within_ten_minutes(self, browser, issuer, now):
        answer = issuer.authorize(begin(browser))
        other = Browser(browser.api)
        late = issuer.authorize(begin(other))
        assert other.get(callback(answer)).status == 400
        assert browser.get(callback(answer) + "&code=other").status == 400
        cookies = dict(browser.cookies)
        assert browser.get(callback({**answer, "iss": issuer.url})).status == 303
        browser.cookies = cookies
        assert browser.get(callback(answer)).status == 400
        now.advance(600)
        assert other.get(callback(late)).status == 400

    def test_a_modified_state_cookie_is_refused(self, browser, issuer):
        answer = issuer.authorize(begin(browser))
        name = web_session.cookie_name(f"sign-in-{answer['state'][:8]}")
        note = browser.cookies[name]
        for at in range(0, len(note), 7):
            browser.cookies[name] = note[:at] + ("0" if note[at] != "0" else "1") + note[at + 1 :]
            assert browser.get(callback(answer)).status == 400
        browser.cookies[name] = note
        assert browser.get(callback(answer)).status == 303


class TestRefusedToken:
    @each(
        "changes",
        [
            *({"iss": it} for it in ("https://evil.example", None)),
            *({"aud": it} for it in ("another-client", ["another-client", "pages"], None)),
            *({"nonce": it} for it in ("another", None)),
            *({"exp": it} for it in (1_772_600_767 - 61, None)),
            *({"sub": it} for it in (None, "", 7, "x" * 300)),
            {"iat": 1_772_600_767 + 3600},
            {"azp": "another-client"},
        ],
    )
    def test_an_id_token_for_another_sign_in_is_refused(self, browser, issuer, changes):
        issuer.changes = changes
        assert sign_in(browser, issuer).status == 400
        assert web_session.cookie_name("session") not in browser.cookies

    def test_an_id_token_that_the_issuer_did_not_sign_is_refused(self, browser, issuer):
        public = issuer.key.as_pem(private=False)
        symmetric = {"alg": "HS256", "kid": issuer.key.kid}
        for header, sign in (
            (symmetric, lambda text: hmac.digest(public, text, "sha256")),
            *(({"alg": algorithm}, lambda _: b"") for algorithm in ("none", "NONE", "", None)),
        ):
            issuer.forge = lambda claims, header=header, sign=sign: _token(header, claims, sign)
            assert sign_in(browser, issuer).status == 400, header
        issuer.forge, issuer.signs_with = None, _key()
        for header in ({}, {"kid": issuer.key.kid}):
            issuer.header = header
            assert sign_in(browser, issuer).status == 400

    def test_the_log_says_why_a_sign_in_was_refused_and_the_page_does_not(self, browser, issuer):
        issuer.signs_with = _key()
        issuer.header = {"kid": issuer.key.kid}
        with captured_logs() as logs:
            reply = sign_in(browser, issuer)
        lines = [json.loads(line) for line in logs.getvalue().splitlines()]
        (refused,) = [line for line in lines if line.get("message") == "refused"]
        assert (refused["requestId"], refused["code"]) == (reply.headers["x-request-id"], "INVALID_PAYLOAD")
        assert refused["reason"].startswith("id_token: ")
        assert refused["reason"] not in reply.text

    @each(
        ("answer", "status"),
        [
            ((200, b'{"access_token": "x", "token_type": "Bearer"}'), 400),
            ((200, b'{"access_token": "x", "token_type": "Bearer", "id_token": "a.b.c"}'), 400),
            ((200, b'{"access_token": "x", "token_type": "Bearer", "id_token": 7}'), 400),
            ((200, b"<html>"), 400),
            ((200, b"[]"), 400),
            ((400, b'{"error": "invalid_grant"}'), 400),
            ((401, b'{"error": "invalid_client"}'), 400),
            ((500, b"oops"), 503),
        ],
    )
    def test_a_token_response_without_a_usable_id_token_is_refused(self, browser, issuer, answer, status):
        issuer.answer = answer
        assert sign_in(browser, issuer).status == status


class TestProvider:
    def test_metadata_and_keys_are_cached_for_an_hour_or_until_rotated(self, browser, issuer, now, monkeypatch):
        names = "response_type client_id redirect_uri scope state nonce code_challenge code_challenge_method"
        assert {*parse_qs(urlsplit(begin(browser)).query)} == {*names.split()}
        for _ in range(3):
            sign_in(browser, issuer)
        assert issuer.fetched.count("/keys") == issuer.fetched.count("/.well-known/openid-configuration") == 1
        now.advance(3601)
        sign_in(browser, issuer)
        assert issuer.fetched.count("/keys") == issuer.fetched.count("/.well-known/openid-configuration") == 2
        monkeypatch.setattr(issuer, "key", _key())
        assert sign_in(browser, issuer).status == 303

    def test_an_issuer_with_a_trailing_slash_is_the_same(self, browser, issuer):
        issuer.changes, issuer.metadata = {"iss": issuer.url + "/"}, {"issuer": issuer.url + "/"}
        assert sign_in(browser, issuer).status == 303

    @each(
        "metadata",
        [{"issuer": "https://evil.example"}, {"issuer": None}, {"token_endpoint": None}, {"authorization_endpoint": 7}],
    )
    def test_metadata_of_another_issuer_is_not_used(self, browser, issuer, metadata):
        issuer.metadata = metadata
        assert browser.get("/sign-in").status == 503

    def test_without_a_reachable_or_configured_issuer_there_is_no_sign_in(self, browser, monkeypatch):
        assert browser.get("/sign-in").status == 404
        monkeypatch.setitem(settings.__dict__, "sign_in_client_id", "pages")
        monkeypatch.setitem(settings.__dict__, "sign_in_issuer", "http://127.0.0.1:9")
        reply = browser.get("/sign-in")
        assert (reply.status, "is unavailable" in text_of(reply)) == (503, True)
        assert browser.get("/signed-out").status == 200

    def test_the_client_id_may_include_the_stage(self, browser, issuer, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "sign_in_client_id", None)
        assert browser.get("/sign-in").status == 404
        urls.read_stage({"stageVariables": {"signInClientId": "pages"}})
        assert "client_id=pages" in begin_sign_in(None).url
        urls.read_stage(None)


class TestSignOut:
    def test_signing_out_ends_the_session_as_a_bearer_token_too(self, browser, issuer):
        sign_in(browser, issuer)
        secret = browser.secret
        browser.get("/")
        reply = browser.press("Sign out")
        assert (reply.status, reply.headers["location"], browser.cookies) == (303, "/signed-out", {})
        assert browser.api.get("/v1/me", secret).status == 401
        # An address can send 60 requests a minute, of which the first sign-in took two.
        replies = [browser.get("/sign-in") for _ in range(59)]
        assert [reply.status for reply in replies] == [303] * 58 + [429]
        assert 1 <= int(replies[-1].headers["retry-after"]) <= 60

    def test_signing_out_links_to_the_issuers_sign_out_if_it_has_one(self, browser, issuer, now):
        reply = browser.get("/signed-out")
        (url,) = re.findall(rf'href="({issuer.url}/logout[^"]*)"', reply.text)
        sent = dict(parse_qsl(urlsplit(unescape(url)).query))
        # OpenID Connect and Cognito have different names for it.
        assert sent["post_logout_redirect_uri"] == sent["logout_uri"]
        assert (urlsplit(sent["logout_uri"]).path, sent["client_id"]) == ("/signed-out", "pages")
        issuer.metadata = {"end_session_endpoint": None}
        now.advance(3601)  # the metadata is cached
        assert "Sign out there" not in browser.get("/signed-out").text

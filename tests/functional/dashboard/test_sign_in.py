"""GET /sign-in, GET /sign-in/callback: the code flow, and the resulting account."""

import base64
import hmac
import json
import re
from collections.abc import Callable
from html import unescape
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import pytest

from controlplane.core.settings import settings
from controlplane.http import web_session
from controlplane.store import keys, organizations
from controlplane.store.table import table
from tests.support.api import Reply
from tests.support.browser import Browser, text_of
from tests.support.issuer import Issuer, _key, callback
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


class TestFirstSignIn:
    def test_the_first_sign_in_creates_an_account_for_the_verified_address(self, browser: Browser, issuer: Issuer):
        issuer.changes = {"email": "Ada@Example.com", "picture": "https://images.example.com/ada.png"}
        reply = sign_in(browser, issuer)
        assert (reply.status, reply.headers["location"]) == (303, "/")
        profile = get_profile("ada@example.com")
        assert profile.name == "Ada Lovelace"
        assert profile.image == "https://images.example.com/ada.png"
        assert principal(browser)["userId"] == profile.user_id

    def test_the_first_sign_in_stores_the_identity_and_no_secret(self, browser: Browser, issuer: Issuer):
        sign_in(browser, issuer)
        dump = str(table_dump())
        assert issuer.url in dump
        assert browser.secret not in dump
        assert "opaque" not in dump

    def test_the_first_sign_in_joins_the_account_with_that_address(self, browser: Browser, issuer, world):
        person = world.person("ada@example.com")
        sign_in(browser, issuer)
        assert principal(browser) == {"type": "session", "userId": person.user_id, "activeOrganizationId": None}

    @pytest.mark.parametrize("verified", [False, None, "false", 1, "yes"])
    def test_an_unverified_address_is_refused_with_the_next_step(self, browser: Browser, issuer, world, verified):
        world.person("ada@example.com")
        issuer.changes = {"email_verified": verified}
        before = len(table_dump())
        reply = sign_in(browser, issuer)
        assert reply.status == 403
        assert "Verify it there" in text_of(reply)
        assert web_session.cookie_name("session") not in browser.cookies
        assert [item for item in table_dump() if item["pk"]["S"].startswith("IDENTITY#")] == []
        assert len(table_dump()) == before + 1  # the address's counter

    @pytest.mark.parametrize("email", [None, "", "ada", "a b@example.com", "x" * 300 + "@example.com", 7])
    def test_an_invalid_address_is_refused(self, browser: Browser, issuer: Issuer, email: object):
        issuer.changes = {"email": email}
        assert sign_in(browser, issuer).status == 403

    @pytest.mark.parametrize(
        ("claims", "name"),
        [
            ({"name": None}, "ada"),
            ({"name": None, "given_name": "Ada", "family_name": "King"}, "Ada King"),
            ({"name": "A\u202eda\nLove\0lace"}, "A da Love lace"),
            ({"name": "x" * 300}, "x" * 100),
            ({"name": 7}, "ada"),
            ({"name": "  "}, "ada"),
        ],
    )
    def test_only_a_displayable_name_is_stored(self, browser: Browser, issuer: Issuer, claims: dict, name: str):
        issuer.changes = claims
        sign_in(browser, issuer)
        assert get_profile("ada@example.com").name == name

    @pytest.mark.parametrize("image", ["javascript:alert(1)", "http://example.com/a.png", 7, "https://" + "x" * 3000])
    def test_only_an_https_image_is_stored(self, browser: Browser, issuer: Issuer, image: object):
        issuer.changes = {"picture": image}
        sign_in(browser, issuer)
        assert get_profile("ada@example.com").image is None


class TestLaterSignIn:
    @pytest.mark.parametrize(
        "claims",
        [
            {"email": "countess@example.com", "email_verified": False},
            {"email": "countess@ex\u00e4mple.com"},
            {"email": None},
        ],
    )
    def test_a_later_sign_in_reaches_the_same_account_despite_an_unusable_address(self, browser, issuer, claims):
        sign_in(browser, issuer)
        first = principal(browser)["userId"]
        issuer.changes = claims
        assert sign_in(browser, issuer).status == 303
        assert principal(browser)["userId"] == first
        assert get_profile(first).email == "ada@example.com"

    def test_a_later_sign_in_updates_name_and_image_in_every_roster(self, browser: Browser, issuer, world):
        sign_in(browser, issuer)
        user_id = principal(browser)["userId"]
        profile = get_profile(user_id)
        made = [organizations.create_organization(slug, slug, profile.user_id) for slug in ("one", "two")]
        issuer.changes = {"name": "Ada King", "picture": "https://images.example.com/new.png"}
        sign_in(browser, issuer)
        for item in [keys.user(user_id)] + [keys.member(it.organization_id, user_id) for it in made]:
            stored = table.get(item)
            assert (stored["name"], stored["image"]) == ("Ada King", "https://images.example.com/new.png")

    def test_a_later_sign_in_keeps_name_and_image_that_the_issuer_omits(self, browser: Browser, issuer: Issuer):
        issuer.changes = {"picture": "https://images.example.com/ada.png"}
        sign_in(browser, issuer)
        issuer.changes = {"name": None}
        sign_in(browser, issuer)
        profile = get_profile("ada@example.com")
        assert (profile.name, profile.image) == ("Ada Lovelace", "https://images.example.com/ada.png")

    def test_a_later_sign_in_ends_the_browsers_previous_session(self, browser: Browser, issuer: Issuer):
        sign_in(browser, issuer)
        old = browser.secret
        sign_in(browser, issuer)
        assert browser.secret != old
        assert browser.api.get("/v1/me", old).status == 401


class TestSession:
    def test_a_session_has_every_scope_as_a_bearer_token_too(self, browser: Browser, issuer: Issuer):
        from controlplane.core.scopes import SCOPES

        sign_in(browser, issuer)
        me = browser.api.get("/v1/me", browser.secret).data
        assert me["principal"]["type"] == "session"
        assert me["scopes"] == sorted(SCOPES)

    def test_the_session_cookie_is_unavailable_to_scripts_and_other_sites(self, browser: Browser, issuer: Issuer):
        reply = sign_in(browser, issuer)
        for name in ("__Host-assent-session=", "__Host-assent-user="):
            (cookie,) = [cookie for cookie in reply.cookies if cookie.startswith(name)]
            assert cookie.split("; ")[1:] == ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Lax", "Secure"]

    def test_the_session_cookie_has_no_prefix_without_tls(self, browser: Browser, issuer, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "dashboard_base_url", "http://127.0.0.1:3000")
        assert web_session.cookie("session", "x", 5) == "assent-session=x; Path=/; Max-Age=5; HttpOnly; SameSite=Lax"

    def test_a_session_expires_after_12_hours(self, browser: Browser, issuer: Issuer, now):
        sign_in(browser, issuer)
        now.advance(12 * 3600 - 1)
        assert browser.get("/organizations").status == 200
        now.advance(1)
        assert browser.get("/organizations").status == 303
        assert "Sign in" in text_of(browser.get("/"))


class TestReturn:
    @pytest.mark.parametrize(
        "target", ["/", "/device", "/device?user_code=BCDF-GHJK", "/invitations", "/organizations"]
    )
    def test_sign_in_returns_to_the_requested_page(self, browser: Browser, issuer: Issuer, target: str):
        assert sign_in(browser, issuer, f"?return_to={quote(target, safe='')}").headers["location"] == target

    @pytest.mark.parametrize(
        "target",
        [
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/device@evil.example",
            "/device?user_code=BCDF-GHJK&x=1",
            "/device?user_code=BCDF-GHJK\r\nSet-Cookie: a=b",
            "/device\n",
            "javascript:alert(1)",
            "/%2f/evil.example",
            "/sign-in",
            " /device",
            "",
            "/assets/../device",
        ],
    )
    def test_sign_in_returns_to_the_first_page_for_any_other_url(self, browser: Browser, issuer: Issuer, target: str):
        assert sign_in(browser, issuer, f"?return_to={quote(target, safe='')}").headers["location"] == "/"

    def test_a_page_that_requires_sign_in_redirects_there_and_back(self, browser: Browser, issuer: Issuer):
        location = browser.get("/device?user_code=BCDF-GHJK").headers["location"]
        assert location == "/sign-in?return_to=%2Fdevice%3Fuser_code%3DBCDF-GHJK"
        reply = sign_in(browser, issuer, location.removeprefix("/sign-in"))
        assert reply.headers["location"] == "/device?user_code=BCDF-GHJK"

    def test_redirects_stay_below_the_stage(self, browser: Browser, issuer: Issuer, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setitem(settings.__dict__, "dashboard_base_url", "https://x.example.com/live")
        monkeypatch.setattr(issuer, "redirect_uri", "https://x.example.com/live/sign-in/callback")
        assert browser.get("/device").headers["location"] == "/live/sign-in?return_to=%2Fdevice"
        assert sign_in(browser, issuer, "?return_to=%2Fdevice").headers["location"] == "/live/device"
        assert 'action="/live/device"' in browser.get("/device").text


class TestRefusedCallback:
    def _answer(self, browser: Browser, issuer: Issuer, **changes: str | None) -> Reply:
        answer = {**issuer.authorize(begin(browser)), **changes}
        return browser.get(callback({name: value for name, value in answer.items() if value is not None}))

    @pytest.mark.parametrize(
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
    def test_a_callback_with_another_state_returns_400(self, browser: Browser, issuer: Issuer, changes: dict):
        reply = self._answer(browser, issuer, **changes)
        assert reply.status == 400
        assert "again" in text_of(reply)
        assert "alert" not in reply.text
        assert web_session.cookie_name("session") not in browser.cookies

    def test_a_callback_with_the_issuers_own_name_is_accepted(self, browser: Browser, issuer: Issuer):
        assert self._answer(browser, issuer, iss=issuer.url).status == 303

    def test_another_browser_cant_finish_the_sign_in(self, browser: Browser, issuer: Issuer):
        answer = issuer.authorize(begin(browser))
        other = Browser(browser.api)
        begin(other)
        assert other.get(callback(answer)).status == 400
        assert browser.get(callback(answer)).status == 303

    def test_a_modified_state_cookie_is_refused(self, browser: Browser, issuer: Issuer):
        answer = issuer.authorize(begin(browser))
        name = web_session.cookie_name(f"sign-in-{answer['state'][:8]}")
        note = browser.cookies[name]
        for at in range(0, len(note), 7):
            browser.cookies[name] = note[:at] + ("0" if note[at] != "0" else "1") + note[at + 1 :]
            assert browser.get(callback(answer)).status == 400
        browser.cookies[name] = note
        assert browser.get(callback(answer)).status == 303

    def test_a_code_works_once(self, browser: Browser, issuer: Issuer):
        answer = issuer.authorize(begin(browser))
        cookies = dict(browser.cookies)
        assert browser.get(callback(answer)).status == 303
        browser.cookies = cookies
        assert browser.get(callback(answer)).status == 400

    def test_a_callback_after_ten_minutes_is_refused(self, browser: Browser, issuer: Issuer, now):
        answer = issuer.authorize(begin(browser))
        now.advance(600)
        assert browser.get(callback(answer)).status == 400

    def test_two_tabs_can_sign_in_independently(self, browser: Browser, issuer: Issuer):
        first = issuer.authorize(begin(browser, "?return_to=%2Fdevice"))
        second = issuer.authorize(begin(browser, "?return_to=%2Finvitations"))
        assert browser.get(callback(first)).headers["location"] == "/device"
        assert browser.get(callback(second)).headers["location"] == "/invitations"
        assert set(browser.cookies) == {web_session.cookie_name("session"), web_session.cookie_name("user")}

    def test_a_repeated_parameter_is_refused(self, browser: Browser, issuer: Issuer):
        answer = issuer.authorize(begin(browser))
        assert browser.get(callback(answer) + "&code=other").status == 400


class TestRefusedToken:
    @pytest.mark.parametrize(
        "changes",
        [
            {"iss": "https://evil.example"},
            {"iss": None},
            {"aud": "another-client"},
            {"aud": ["another-client", "pages"]},
            {"aud": None},
            {"nonce": "another"},
            {"nonce": None},
            {"exp": 1_772_600_767 - 61},
            {"exp": None},
            {"iat": 1_772_600_767 + 3600},
            {"sub": None},
            {"sub": ""},
            {"sub": 7},
            {"sub": "x" * 300},
            {"azp": "another-client"},
        ],
    )
    def test_an_id_token_for_another_sign_in_is_refused(self, browser: Browser, issuer: Issuer, changes: dict):
        issuer.changes = changes
        assert sign_in(browser, issuer).status == 400
        assert web_session.cookie_name("session") not in browser.cookies

    def test_an_id_token_signed_with_another_key_is_refused(self, browser: Browser, issuer: Issuer):
        issuer.signs_with = _key()
        issuer.header = {"kid": issuer.key.kid}
        assert sign_in(browser, issuer).status == 400

    def test_the_log_says_why_a_sign_in_was_refused_and_the_page_does_not(self, browser: Browser, issuer: Issuer):
        issuer.signs_with = _key()
        issuer.header = {"kid": issuer.key.kid}
        with captured_logs() as logs:
            reply = sign_in(browser, issuer)
        lines = [json.loads(line) for line in logs.getvalue().splitlines()]
        (refused,) = [line for line in lines if line.get("message") == "refused"]
        assert (refused["requestId"], refused["code"]) == (reply.headers["x-request-id"], "INVALID_PAYLOAD")
        assert refused["reason"].startswith("id_token: ")
        assert refused["reason"] not in reply.text

    def test_an_unknown_key(self, browser: Browser, issuer: Issuer):
        issuer.signs_with = _key()
        assert sign_in(browser, issuer).status == 400

    def test_an_id_token_with_a_symmetric_signature_is_refused(self, browser: Browser, issuer: Issuer):
        public = issuer.key.as_pem(private=False)
        header = {"alg": "HS256", "kid": issuer.key.kid}
        issuer.forge = lambda claims: _token(header, claims, lambda text: hmac.digest(public, text, "sha256"))
        assert sign_in(browser, issuer).status == 400

    @pytest.mark.parametrize("algorithm", ["none", "NONE", "", None])
    def test_an_unsigned_id_token_is_refused(self, browser: Browser, issuer: Issuer, algorithm: str | None):
        issuer.forge = lambda claims: _token({"alg": algorithm}, claims, lambda _: b"")
        assert sign_in(browser, issuer).status == 400

    @pytest.mark.parametrize(
        "answer",
        [
            (200, b'{"access_token": "x", "token_type": "Bearer"}'),
            (200, b'{"access_token": "x", "token_type": "Bearer", "id_token": "a.b.c"}'),
            (200, b'{"access_token": "x", "token_type": "Bearer", "id_token": 7}'),
            (200, b"<html>"),
            (200, b"[]"),
            (400, b'{"error": "invalid_grant"}'),
            (401, b'{"error": "invalid_client"}'),
        ],
    )
    def test_a_token_response_without_a_usable_id_token_is_refused(self, browser: Browser, issuer, answer):
        issuer.answer = answer
        assert sign_in(browser, issuer).status == 400

    def test_a_failing_issuer_returns_503(self, browser: Browser, issuer: Issuer):
        issuer.answer = (500, b"oops")
        assert sign_in(browser, issuer).status == 503


class TestProvider:
    def test_rotated_keys_are_fetched_again(self, browser: Browser, issuer: Issuer, monkeypatch):
        sign_in(browser, issuer)
        monkeypatch.setattr(issuer, "key", _key())
        assert sign_in(browser, issuer).status == 303

    def test_metadata_and_keys_are_cached_for_an_hour(self, browser: Browser, issuer: Issuer, now):
        for _ in range(3):
            sign_in(browser, issuer)
        assert issuer.fetched.count("/keys") == issuer.fetched.count("/.well-known/openid-configuration") == 1
        now.advance(3601)
        sign_in(browser, issuer)
        assert issuer.fetched.count("/keys") == issuer.fetched.count("/.well-known/openid-configuration") == 2

    def test_an_issuer_with_a_trailing_slash_is_the_same(self, browser: Browser, issuer: Issuer):
        issuer.metadata = issuer.changes = {"iss": issuer.url + "/"}
        issuer.metadata = {"issuer": issuer.url + "/"}
        assert sign_in(browser, issuer).status == 303

    @pytest.mark.parametrize(
        "metadata",
        [{"issuer": "https://evil.example"}, {"issuer": None}, {"token_endpoint": None}, {"authorization_endpoint": 7}],
    )
    def test_metadata_of_another_issuer_is_not_used(self, browser: Browser, issuer: Issuer, metadata: dict):
        issuer.metadata = metadata
        assert browser.get("/sign-in").status == 503

    def test_an_unreachable_issuer_returns_503(self, browser: Browser, issuer: Issuer, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "sign_in_issuer", "http://127.0.0.1:9")
        reply = browser.get("/sign-in")
        assert reply.status == 503
        assert "is unavailable" in text_of(reply)

    def test_an_unconfigured_issuer_returns_404(self, browser: Browser):
        assert browser.get("/sign-in").status == 404

    def test_the_client_id_may_include_the_stage(self, browser: Browser, issuer: Issuer, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "sign_in_client_id", None)
        assert browser.get("/sign-in").status == 404
        from controlplane.core import urls

        urls.read_stage({"stageVariables": {"signInClientId": "pages"}})
        from dashboard.sign_in import begin_sign_in

        assert "client_id=pages" in begin_sign_in(None).url
        urls.read_stage(None)

    def test_the_authorization_request_uses_a_code_pkce_and_a_nonce(self, browser: Browser, issuer: Issuer):
        query = parse_qs(urlsplit(begin(browser)).query)
        assert set(query) == {
            "response_type",
            "client_id",
            "redirect_uri",
            "scope",
            "state",
            "nonce",
            "code_challenge",
            "code_challenge_method",
        }


class Test429:
    def test_the_61st_sign_in_of_an_address_in_a_minute_returns_429(self, browser: Browser, issuer: Issuer):
        for _ in range(60):
            begin(browser)
        browser.cookies = {}
        reply = browser.get("/sign-in")
        assert reply.status == 429
        assert 1 <= int(reply.headers["retry-after"]) <= 60


class TestSignOut:
    def test_signing_out_ends_the_session_as_a_bearer_token_too(self, browser: Browser, issuer: Issuer):
        sign_in(browser, issuer)
        secret = browser.secret
        browser.get("/")
        reply = browser.press("Sign out")
        assert (reply.status, reply.headers["location"]) == (303, "/signed-out")
        assert browser.cookies == {}
        assert browser.api.get("/v1/me", secret).status == 401

    def test_signing_out_links_to_the_issuers_sign_out(self, browser: Browser, issuer: Issuer):
        reply = browser.get("/signed-out")
        (url,) = re.findall(rf'href="({issuer.url}/logout[^"]*)"', reply.text)
        sent = dict(parse_qsl(urlsplit(unescape(url)).query))
        # OpenID Connect and Cognito have different names for it.
        assert sent["post_logout_redirect_uri"] == sent["logout_uri"]
        assert urlsplit(sent["logout_uri"]).path == "/signed-out"
        assert sent["client_id"] == "pages"

    def test_signing_out_omits_the_link_if_the_issuer_has_none(self, browser: Browser, issuer: Issuer):
        issuer.metadata = {"end_session_endpoint": None}
        assert "Sign out there" not in browser.get("/signed-out").text

    def test_signing_out_works_while_the_issuer_is_unavailable(self, browser: Browser, issuer: Issuer, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "sign_in_issuer", "http://127.0.0.1:9")
        assert browser.get("/signed-out").status == 200

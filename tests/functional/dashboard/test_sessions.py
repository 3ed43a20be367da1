"""GET /sessions, POST /sessions/revoke, POST /sessions/revoke-others."""

import pytest

from controlplane.access import web_session
from controlplane.people import sessions
from dashboard.account import sessions as session_pages
from local.gateway import Request
from tests.functional.dashboard.test_sign_in import sign_in
from tests.functional.device_auth.devices import refresh, request_code, works
from tests.support.api import Api
from tests.support.browser import Browser, text_of
from tests.support.issuer import Issuer
from tests.support.world import Person, World


@pytest.fixture
def device(api: Api, person: Person, now) -> dict:
    """Returns the tokens of the person's device, which is older than the visitor's session."""
    api.source_ip = "203.0.113.9"
    requester = request_code(api, deviceName="Ada's laptop")
    api.source_ip = "198.51.100.7"
    pair: dict = requester.approved(person.user_id).redeem().data
    now.advance(1)
    return pair


class TestCookies:
    def test_another_hosts_cookie_cant_contain_a_session(self, browser: Browser, world: World):
        """A sibling host can set cookies for the whole domain, but none whose name has the prefix."""
        other = Browser(browser.api).signed_in(world.person().user_id)
        name = web_session.cookie_name("session")
        for cookie, value in (("x", f"1,{name}={other.secret}"), *((f"{it}{name}", other.secret) for it in "\x1f\xa0")):
            browser.cookies = {cookie: value}
            assert browser.get("/sessions").status == 303

    def test_a_session_is_found_among_cookies_that_were_split(self, visitor: Browser):
        session = ("cookie", f"{web_session.cookie_name('session')}={visitor.secret}")
        for sent in ([("Cookie", "a=1,2"), session], [session, ("Cookie", "a=1,2")]):
            assert visitor.api.send(Request("GET", "/sessions", sent)).status == 200


class TestShown:
    def test_shows_the_kind_of_each_entry_and_the_current_session(self, device: dict, visitor: Browser, world: World):
        request_code(visitor.api, deviceName="Grace's laptop").approved(world.person().user_id)
        text = text_of(visitor.get("/sessions"))
        for fact in (
            "Ada's laptop",
            "assent-cli",
            "203.0.113.9",
            "March 4, 2026, 05:06 UTC",
            "March 4, 2026, between 05:00 and 05:59 UTC",
            "Token made by the operator",
        ):
            assert fact in text
        assert "Grace" not in text
        assert text.count("This session") == 1
        assert text.index("Web session This session") < text.index("Ada's laptop")

    def test_escapes_a_devices_name_and_omits_it_after_its_expiry(self, api: Api, person, visitor: Browser, now):
        name = "<b>x</b>\"'{{7*7}}"
        request_code(api, deviceName=name).approved(person.user_id)
        reply = visitor.get("/sessions")
        assert (name in text_of(reply), "<b>x" in reply.text) == (True, False)
        now.advance(900)
        assert name not in text_of(visitor.get("/sessions"))

    def test_many_sessions_are_paginated(self, person: Person, visitor: Browser, world: World, now):
        for _ in range(session_pages.PER_PAGE):
            now.advance(1)
            world.token(person.user_id)
        visitor.get("/sessions")
        second = visitor.press("Older entries")
        assert (visitor.offers("Older entries"), "This session" in second.text) == (0, True)
        assert visitor.get("/sessions?cursor=nonsense").status == 400


class TestRevoked:
    def test_revoking_a_device_ends_its_access_at_once(self, api: Api, device: dict, visitor: Browser):
        visitor.get("/")
        page = visitor.press("Devices and sessions")
        reply = visitor.press("Revoke", near="Ada's laptop")
        assert (reply.status, "Revoked. It no longer has access." in text_of(reply)) == (200, True)
        assert "Ada's laptop" not in text_of(reply)
        assert not works(api, device["accessToken"])
        assert refresh(api, device["refreshToken"]).status == 401
        reply = visitor.press("Revoke", near="Ada's laptop", on=page)
        assert (reply.status, "no longer there" in text_of(reply)) == (404, True)
        assert "<title>Error: Devices and sessions" in reply.text

    def test_revoking_the_current_session_signs_out(self, visitor: Browser):
        visitor.get("/sessions")
        reply = visitor.press("Revoke Web session: dashboard, and sign out")
        assert (reply.status, reply.headers["location"], visitor.cookies) == (303, "/signed-out", {})
        assert visitor.get("/sessions").status == 303

    def test_revoking_another_users_session_returns_404_and_changes_nothing(self, api: Api, visitor, world):
        other = world.person()
        theirs = api.get("/v1/me/sessions", other.token).data[0]["id"]
        for session_id in (theirs, "", "nonsense", "SESSION#x"):
            assert visitor.forge("/sessions/revoke", {"session_id": session_id}).status == 404
        assert works(api, other.token)

    def test_revoking_all_others_keeps_the_current_session(self, api: Api, person, device, visitor):
        other = sessions.create(person.user_id)
        visitor.get("/sessions")
        reply = visitor.press("Revoke all others")
        assert "Revoked 3 entries. Only this session has access now." in text_of(reply)
        assert text_of(reply).count("IP address") == 1
        for secret, has_access in ((other, False), (person.token, False), (visitor.secret, True)):
            assert works(api, secret) is has_access
        assert not works(api, device["accessToken"])

    def test_revoking_more_than_100_says_that_more_remain(self, person: Person, visitor, world, monkeypatch):
        monkeypatch.setattr(session_pages, "_REVOKED_AT_ONCE", 28)  # more than a page
        for _ in range(28):
            world.token(person.user_id)
        visitor.get("/sessions")
        assert "There are more: press the button again." in text_of(visitor.press("Revoke all others"))
        assert "Revoked 1 entry. Only this session" in text_of(visitor.press("Revoke all others"))


def test_a_sign_in_is_listed_with_its_client_address(browser: Browser, issuer: Issuer):
    browser.api.source_ip = "203.0.113.9"
    sign_in(browser, issuer, "?return_to=/sessions")
    text = text_of(browser.get("/sessions"))
    assert "Web session This session" in text
    assert "IP address 203.0.113.9" in text

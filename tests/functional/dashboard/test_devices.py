"""The pages of a person's devices and sessions: approving or denying a device, the list, and revoking."""

import pytest

from controlplane.access import web_session
from controlplane.people import sessions
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings
from dashboard.account import sessions as session_pages
from local.gateway import Request
from tests.functional.device_auth.devices import Device, refresh, request_code, works
from tests.support.api import Reply
from tests.support.browser import Browser, text_of
from tests.support.world import table_dump

APPROVE, DENY = "/device/approve", "/device/deny"


@pytest.fixture
def device(api):
    api.source_ip = "203.0.113.9"
    made = request_code(api, scope="projects.read billing.read", deviceName="Ada's laptop")
    api.source_ip = "198.51.100.7"
    return made


def review(visitor: Browser, code: str) -> Reply:
    visitor.get("/device")
    return visitor.press("Continue", fill={"Code": code})


def status_of(device: Device) -> str | None:
    """Returns the status that the device sees when it polls."""
    reply = device.redeem()
    return None if reply.status == 200 else reply.error["details"]["status"]


class TestShown:
    def test_shows_device_address_scopes_account_and_organizations(self, visitor, device, person, world, now):
        now.advance(125)
        text = text_of(review(visitor, device.user_code))
        assert "None yet." in text
        for fact in (device.user_code, "assent-cli", "Ada's laptop", "203.0.113.9", "2 minutes ago"):
            assert fact in text
        assert [SCOPES[it] in text for it in ("projects.read", "billing.read", "projects.write")] == [True, True, False]
        world.company(name="Acme", owner=person)
        world.member(world.company(name="Globex"), "admin", person)
        world.company(name="Initech")
        text = text_of(review(visitor, device.user_code))
        assert f"Your account {person.name}, {person.email}" in text
        assert "Acme, as owner Globex, as admin" in text
        assert "Initech" not in text

    def test_shows_the_age_of_the_request_in_words_and_accepts_the_code_as_people_type_it(self, visitor, device, now):
        typed = f" {device.user_code.lower().replace('-', '')} "
        for seconds, words in ((59, "less than a"), (1, "1 minute"), (59, "1 minute"), (780, "14 minutes")):
            now.advance(seconds)
            assert f"{words} " in text_of(review(visitor, typed)).partition("Requested")[2]

    def test_marks_scopes_that_change_data_or_manage_people_and_escapes_the_name(self, visitor, api):
        name = "<b>x</b>\"'{{7*7}}"
        scope = "projects.read projects.write members.read members.write vendors.write"
        reply = review(visitor, request_code(api, scope=scope, deviceName=name).user_code)
        assert (name in text_of(reply), "<b>x" in reply.text) == (True, False)
        for scope, mark in (
            ("members.read", ""),
            ("members.write", "Manages people "),
            ("projects.read", ""),
            ("projects.write", "Makes changes "),
            ("vendors.write", "Makes changes "),
        ):
            assert f"{SCOPES[scope]} {mark}{scope}" in text_of(reply)

    def test_a_link_only_fills_in_the_code(self, visitor, device):
        before = len(table_dump())
        reply = visitor.get(f"/device?user_code={device.user_code}")
        assert visitor.sends("Continue") == {"form_token": visitor.form_token, "user_code": device.user_code}
        assert not visitor.offers("Approve")
        assert "Ada" not in text_of(reply)
        assert len(table_dump()) == before
        assert status_of(device) == "authorization_pending"


class TestDecided:
    def test_approving_grants_what_was_shown_and_never_more(self, visitor, api, device, person):
        review(visitor, device.user_code)
        reply = visitor.press("Approve")
        assert (reply.status, "Device approved" in text_of(reply)) == (200, True)
        me = visitor.api.get("/v1/me", device.redeem().data["accessToken"]).data
        assert (me["principal"]["userId"], me["scopes"]) == (person.user_id, ["billing.read", "projects.read"])
        other = request_code(api, scope="projects.read billing.read")
        review(visitor, other.user_code)
        sent = visitor.sends("Approve")
        assert {name for name in sent if "grant" in name} == {"grant.billing.read", "grant.projects.read"}
        assert visitor.forge(APPROVE, {**sent, "grant.projects.write": "yes", "grant.": "yes"}).status == 200
        assert other.redeem().data["scope"] == "billing.read projects.read"

    def test_approving_without_scopes_asks_again(self, visitor, device):
        review(visitor, device.user_code)
        reply = visitor.press("Approve", fill={"billing.read": False, "projects.read": False})
        assert (reply.status, "<title>Error: Approve or deny a device" in reply.text) == (400, True)
        assert '<a href="#grant-billing.read">Select at least one permission, or deny the device.</a>' in reply.text
        assert status_of(device) == "authorization_pending"
        assert visitor.press("Approve", fill={"billing.read": False}).status == 200
        assert device.redeem().data["scope"] == "projects.read"

    def test_denying_takes_one_click(self, visitor, device):
        review(visitor, device.user_code)
        assert not any(name.startswith("grant.") for name in visitor.sends("Deny"))
        reply = visitor.press("Deny")
        assert (reply.status, "Device denied" in text_of(reply)) == (200, True)
        assert device.redeem().status == 403


class TestRefusedCode:
    def test_an_unknown_or_empty_code_is_refused_in_the_form(self, visitor):
        reply = review(visitor, "BBBB-BBBB")
        assert reply.status == 404
        for text in ("<title>Error: ", '<a href="#user_code">No request has this code.', 'aria-invalid="true"'):
            assert text in reply.text
        assert visitor.entered("Code") == "BBBB-BBBB"
        for code in ("", "   ", "\t"):
            assert review(visitor, code).status == 400

    @pytest.mark.parametrize("decision", ["Approve", "Deny"])
    def test_a_decided_or_expired_code_returns_409(self, visitor, device, decision, now):
        page = review(visitor, device.user_code)
        visitor.press(decision)
        assert review(visitor, device.user_code).status == 409
        other = request_code(visitor.api)
        review(visitor, other.user_code)
        now.advance(900)
        assert visitor.press(decision).status == visitor.press(decision, on=page).status == 409
        reply = review(visitor, other.user_code)
        assert (reply.status, "expired" in text_of(reply)) == (409, True)


class TestRefusedDecision:
    def test_a_decision_that_differs_from_what_was_shown_returns_403(self, visitor, device, world):
        review(visitor, device.user_code)
        shown = visitor.sends("Approve")
        for changes in (
            *({"scopes": scopes} for scopes in ("billing.read projects.read projects.write", "")),
            *({"until": until} for until in ("9999999999", "-1", "\u0661", "9" * 500, "")),
            *({"seal": seal} for seal in ("0" * 64, "", "é")),
            {"user_code": "BBBB-BBBB"},
        ):
            assert visitor.forge(APPROVE, {**shown, **changes}).status == 403, changes
        assert visitor.forge(DENY, {**shown, "seal": "0" * 64}).status == 403
        other = Browser(visitor.api).signed_in(world.person().user_id)
        assert other.forge(APPROVE, {**shown, "form_token": other.form_token}).status == 403
        assert status_of(device) == "authorization_pending"


def test_disabled_device_sign_in_has_no_page_and_no_link(visitor, monkeypatch):
    monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)
    assert visitor.get("/device").status == 404
    assert "/device" not in visitor.get("/").text
    for action in ("/device", APPROVE, DENY):
        assert visitor.forge(action).status == 404


@pytest.fixture
def laptop(api, person, now):
    """Returns the tokens of the person's laptop, which is older than the visitor's session."""
    api.source_ip = "203.0.113.9"
    requester = request_code(api, deviceName="Ada's laptop")
    api.source_ip = "198.51.100.7"
    pair: dict = requester.approved(person.user_id).redeem().data
    now.advance(1)
    return pair


class TestCookies:
    def test_another_hosts_cookie_cant_contain_a_session(self, browser, world):
        """A sibling host can set cookies for the whole domain, but none whose name has the prefix."""
        other = Browser(browser.api).signed_in(world.person().user_id)
        name = web_session.cookie_name("session")
        for cookie, value in (("x", f"1,{name}={other.secret}"), *((f"{it}{name}", other.secret) for it in "\x1f\xa0")):
            browser.cookies = {cookie: value}
            assert browser.get("/sessions").status == 303

    def test_a_session_is_found_among_cookies_that_were_split(self, visitor):
        session = ("cookie", f"{web_session.cookie_name('session')}={visitor.secret}")
        for sent in ([("Cookie", "a=1,2"), session], [session, ("Cookie", "a=1,2")]):
            assert visitor.api.send(Request("GET", "/sessions", sent)).status == 200


class TestSessions:
    def test_shows_the_kind_of_each_entry_and_the_current_session(self, laptop, visitor, world, person, now):
        name = "<b>x</b>\"'{{7*7}}"
        request_code(visitor.api, deviceName="Grace's laptop").approved(world.person().user_id)
        request_code(visitor.api, deviceName=name).approved(person.user_id)
        reply = visitor.get("/sessions")
        text = text_of(reply)
        for fact in (
            "Ada's laptop",
            "assent-cli",
            "203.0.113.9",
            "March 4, 2026, 05:06 UTC",
            "In the last hour",
            "Token made by the operator",
        ):
            assert fact in text
        assert ("Grace" in text, name in text, "<b>x" in reply.text) == (False, True, False)
        assert text.count("This session") == 1
        assert text.index("Web session This session") < text.index("Ada's laptop")
        now.advance(900)
        assert name not in text_of(visitor.get("/sessions"))
        now.advance(2 * 3_600)
        assert "Last used About 2 hours ago" in text_of(visitor.get("/sessions"))

    def test_many_sessions_are_paginated(self, person, visitor, world, now):
        for _ in range(session_pages.PER_PAGE):
            now.advance(1)
            world.token(person.user_id)
        visitor.get("/sessions")
        second = visitor.press("Older entries")
        assert (visitor.offers("Older entries"), "This session" in second.text) == (0, True)
        assert visitor.get("/sessions?cursor=nonsense").status == 400


class TestRevoked:
    def test_revoking_a_device_ends_its_access_at_once(self, api, laptop, visitor):
        visitor.get("/")
        page = visitor.press("Devices and sessions")
        reply = visitor.press("Revoke", near="Ada's laptop")
        assert (reply.status, "Revoked. It no longer has access." in text_of(reply)) == (200, True)
        assert "Ada's laptop" not in text_of(reply)
        assert not works(api, laptop["accessToken"])
        assert refresh(api, laptop["refreshToken"]).status == 401
        reply = visitor.press("Revoke", near="Ada's laptop", on=page)
        assert (reply.status, "no longer there" in text_of(reply)) == (404, True)
        assert "<title>Error: Devices and sessions" in reply.text

    def test_revoking_all_others_keeps_the_current_session(self, api, person, laptop, visitor, world):
        other, stranger = sessions.create(person.user_id), world.person()
        theirs = api.get("/v1/me/sessions", stranger.token).data[0]["id"]
        for session_id in (theirs, "", "nonsense", "SESSION#x"):
            assert visitor.forge("/sessions/revoke", {"session_id": session_id}).status == 404
        visitor.get("/sessions")
        reply = visitor.press("Revoke all others")
        assert "Revoked 3 entries. Only this session has access now." in text_of(reply)
        assert text_of(reply).count("IP address") == 1
        access = [works(api, it) for it in (other, person.token, laptop["accessToken"], visitor.secret, stranger.token)]
        assert access == [False, False, False, True, True]
        visitor.get("/sessions")
        reply = visitor.press("Revoke Web session: dashboard, and sign out")
        assert (reply.status, reply.headers["location"], visitor.cookies) == (303, "/signed-out", {})
        assert visitor.get("/sessions").status == 303

    def test_revoking_more_than_100_says_that_more_remain(self, person, visitor, world, monkeypatch):
        monkeypatch.setattr(session_pages, "_REVOKED_AT_ONCE", 28)  # more than a page
        for _ in range(28):
            world.token(person.user_id)
        visitor.get("/sessions")
        assert "There are more: press the button again." in text_of(visitor.press("Revoke all others"))
        assert "Revoked 1 entry. Only this session" in text_of(visitor.press("Revoke all others"))

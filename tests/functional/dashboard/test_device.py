"""GET /device, POST /device, POST /device/approve, POST /device/deny."""

import pytest

from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings
from tests.functional.device_auth.devices import Device, request_code
from tests.support.api import Api, Reply
from tests.support.browser import Browser, text_of
from tests.support.world import Person, World, table_dump

APPROVE, DENY = "/device/approve", "/device/deny"


@pytest.fixture
def device(api: Api) -> Device:
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
    def test_shows_device_address_scopes_account_and_organizations(self, visitor, device: Device, person, world, now):
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

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [(59, "less than a minute ago"), (60, "1 minute ago"), (119, "1 minute ago"), (899, "14 minutes ago")],
    )
    def test_shows_the_age_of_the_request_in_words(self, visitor: Browser, device, now, seconds, words):
        now.advance(seconds)
        assert words in text_of(review(visitor, device.user_code))

    def test_accepts_the_code_as_people_type_it(self, visitor: Browser, device: Device):
        code = device.user_code
        for typed in (code.lower(), code.replace("-", ""), f" {code} "):
            assert review(visitor, typed).status == 200

    def test_marks_scopes_that_change_data_or_manage_people_and_escapes_the_name(self, visitor: Browser, api: Api):
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

    def test_a_link_only_fills_in_the_code(self, visitor: Browser, device: Device):
        before = len(table_dump())
        reply = visitor.get(f"/device?user_code={device.user_code}")
        assert visitor.sends("Continue") == {"form_token": visitor.form_token, "user_code": device.user_code}
        assert not visitor.offers("Approve")
        assert "Ada" not in text_of(reply)
        assert len(table_dump()) == before
        assert status_of(device) == "authorization_pending"


class TestDecided:
    def test_approving_grants_what_was_shown(self, visitor: Browser, device: Device, person: Person):
        review(visitor, device.user_code)
        reply = visitor.press("Approve")
        assert (reply.status, "Device approved" in text_of(reply)) == (200, True)
        me = visitor.api.get("/v1/me", device.redeem().data["accessToken"]).data
        assert (me["principal"]["userId"], me["scopes"]) == (person.user_id, ["billing.read", "projects.read"])

    def test_approving_grants_only_the_checked_scopes(self, visitor: Browser, device: Device):
        review(visitor, device.user_code)
        assert visitor.press("Approve", fill={"billing.read": False}).status == 200
        tokens = device.redeem().data
        assert tokens["scope"] == "projects.read"
        assert visitor.api.get("/v1/me", tokens["accessToken"]).data["scopes"] == ["projects.read"]

    def test_approving_never_grants_more_than_was_shown(self, visitor: Browser, device: Device):
        review(visitor, device.user_code)
        sent = visitor.sends("Approve")
        assert {name for name in sent if "grant" in name} == {"grant.billing.read", "grant.projects.read"}
        assert visitor.forge(APPROVE, {**sent, "grant.projects.write": "yes", "grant.": "yes"}).status == 200
        assert device.redeem().data["scope"] == "billing.read projects.read"

    def test_approving_without_scopes_asks_again(self, visitor: Browser, device: Device):
        review(visitor, device.user_code)
        reply = visitor.press("Approve", fill={"billing.read": False, "projects.read": False})
        assert (reply.status, "<title>Error: Approve or deny a device" in reply.text) == (400, True)
        assert '<a href="#grant-billing.read">Select at least one permission, or deny the device.</a>' in reply.text
        assert status_of(device) == "authorization_pending"
        assert visitor.press("Approve", fill={"projects.read": True}).status == 200

    def test_denying_takes_one_click(self, visitor: Browser, device: Device):
        review(visitor, device.user_code)
        assert not any(name.startswith("grant.") for name in visitor.sends("Deny"))
        reply = visitor.press("Deny")
        assert (reply.status, "Device denied" in text_of(reply)) == (200, True)
        assert device.redeem().status == 403


class TestRefusedCode:
    def test_an_unknown_or_empty_code_is_refused_in_the_form(self, visitor: Browser):
        reply = review(visitor, "BBBB-BBBB")
        assert reply.status == 404
        for text in ("<title>Error: ", '<a href="#user_code">No request has this code.', 'aria-invalid="true"'):
            assert text in reply.text
        assert visitor.entered("Code") == "BBBB-BBBB"
        for code in ("", "   ", "\t"):
            assert review(visitor, code).status == 400

    @pytest.mark.parametrize("decision", ["Approve", "Deny"])
    def test_a_decided_or_expired_code_returns_409(self, visitor: Browser, device: Device, decision: str, now):
        page = review(visitor, device.user_code)
        visitor.press(decision)
        assert review(visitor, device.user_code).status == 409
        other = request_code(visitor.api)
        review(visitor, other.user_code)
        now.advance(900)
        assert visitor.press(decision).status == visitor.press(decision, on=page).status == 409
        reply = review(visitor, other.user_code)
        assert (reply.status, "expired" in text_of(reply)) == (409, True)

    def test_a_code_is_shown_to_five_people_however_often_they_reload(self, visitor: Browser, world, device: Device):
        for _ in range(12):
            assert review(visitor, device.user_code).status == 200
        for status in (200, 200, 200, 200, 404):
            other = Browser(visitor.api).signed_in(world.person().user_id)
            assert review(other, device.user_code).status == status
        assert status_of(device) == "authorization_pending"

    def test_after_five_wrong_codes_in_15_minutes_nothing_is_shown_or_decided(self, visitor, device: Device, now):
        page = review(visitor, device.user_code)
        for _ in range(5):
            assert review(visitor, "BBBB-BBBB").status == 404
        refused = [review(visitor, device.user_code), *(visitor.press(it, on=page) for it in ("Approve", "Deny"))]
        for reply in refused:
            assert (reply.status, int(reply.headers["retry-after"]) <= 900) == (429, True)
        assert status_of(device) == "authorization_pending"
        now.advance(900)
        assert review(visitor, "BBBB-BBBB").status == 404


class TestRefusedDecision:
    def test_a_decision_that_differs_from_what_was_shown_returns_403(self, visitor: Browser, device: Device, world):
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

    def test_a_decision_after_another_persons_returns_409(self, visitor: Browser, device: Device, world: World):
        other = Browser(visitor.api).signed_in(world.person().user_id)
        review(other, device.user_code)
        review(visitor, device.user_code)
        assert visitor.press("Deny").status == 200
        assert other.press("Approve").status == 409
        assert device.redeem().status == 403


def test_disabled_device_sign_in_has_no_page_and_no_link(visitor: Browser, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)
    assert visitor.get("/device").status == 404
    assert "/device" not in visitor.get("/").text
    for action in ("/device", APPROVE, DENY):
        assert visitor.forge(action).status == 404

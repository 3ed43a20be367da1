"""GET /device, POST /device, POST /device/approve, POST /device/deny."""

import pytest

from controlplane.core.scopes import SCOPES
from controlplane.core.settings import settings
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
    def test_shows_device_address_scopes_and_time_of_the_request(self, visitor: Browser, device: Device, now):
        now.advance(125)
        text = text_of(review(visitor, device.user_code))
        assert device.user_code in text
        for fact in ("assent-cli", "Ada's laptop", "203.0.113.9", "2 minutes ago"):
            assert fact in text
        for scope in ("projects.read", "billing.read"):
            assert SCOPES[scope] in text
        assert SCOPES["projects.write"] not in text

    @pytest.mark.parametrize(
        ("seconds", "words"),
        [
            (0, "less than a minute ago"),
            (59, "less than a minute ago"),
            (60, "1 minute ago"),
            (119, "1 minute ago"),
            (899, "14 minutes ago"),
        ],
    )
    def test_shows_the_age_of_the_request_in_words(self, visitor: Browser, device, now, seconds, words):
        now.advance(seconds)
        assert words in text_of(review(visitor, device.user_code))

    @pytest.mark.parametrize(
        "write",
        [str.lower, lambda code: code.replace("-", ""), lambda code: f" {code} "],
        ids=["in lower case", "in one", "with spaces"],
    )
    def test_accepts_the_code_as_people_type_it(self, visitor: Browser, device: Device, write):
        assert review(visitor, write(device.user_code)).status == 200

    def test_escapes_the_name_that_the_device_reports(self, visitor: Browser, api: Api):
        name = "<b>x</b>\"'{{7*7}}"
        reply = review(visitor, request_code(api, deviceName=name).user_code)
        assert name in text_of(reply)
        assert "<b>x" not in reply.text

    def test_a_link_only_fills_in_the_code(self, visitor: Browser, device: Device):
        before = len(table_dump())
        reply = visitor.get(f"/device?user_code={device.user_code}")
        assert f'value="{device.user_code}"' in reply.text
        assert visitor.sends("Continue") == {"form_token": visitor.form_token, "user_code": device.user_code}
        assert not visitor.offers("Approve")
        assert "Ada" not in text_of(reply)
        assert len(table_dump()) == before
        assert status_of(device) == "authorization_pending"

    def test_shows_the_account_and_the_organizations_the_device_would_reach(self, visitor, device, person, world):
        assert "None yet." in text_of(review(visitor, device.user_code))
        world.company(name="Acme", owner=person)
        world.member(world.company(name="Globex"), "admin", person)
        world.company(name="Initech")
        text = text_of(review(visitor, device.user_code))
        assert f"Your account {person.name}, {person.email}" in text
        assert "Acme, as owner Globex, as admin" in text
        assert "Initech" not in text

    def test_marks_scopes_that_change_data_or_manage_people(self, visitor: Browser, api: Api):
        requester = request_code(api, scope="projects.read projects.write members.read members.write vendors.write")
        text = text_of(review(visitor, requester.user_code))
        for scope, mark in (
            ("members.read", ""),
            ("members.write", "Manages people "),
            ("projects.read", ""),
            ("projects.write", "Makes changes "),
            ("vendors.write", "Makes changes "),
        ):
            assert f"{SCOPES[scope]} {mark}{scope}" in text

    def test_every_scope_can_be_unchecked(self, visitor: Browser, device: Device):
        review(visitor, device.user_code)
        grants = {name for name in visitor.sends("Approve") if name.startswith("grant.")}
        assert grants == {"grant.billing.read", "grant.projects.read"}
        assert not any(name.startswith("grant.") for name in visitor.sends("Deny"))


class TestApproved:
    def test_approving_grants_what_was_shown(self, visitor: Browser, device: Device, person: Person):
        review(visitor, device.user_code)
        reply = visitor.press("Approve")
        assert reply.status == 200
        assert "Device approved" in text_of(reply)
        token = device.redeem().data["accessToken"]
        me = visitor.api.get("/v1/me", token).data
        assert me["principal"]["userId"] == person.user_id
        assert me["scopes"] == ["billing.read", "projects.read"]

    def test_approving_grants_only_the_checked_scopes(self, visitor: Browser, device: Device):
        review(visitor, device.user_code)
        assert visitor.press("Approve", fill={"billing.read": False}).status == 200
        tokens = device.redeem().data
        assert tokens["scope"] == "projects.read"
        assert visitor.api.get("/v1/me", tokens["accessToken"]).data["scopes"] == ["projects.read"]

    def test_approving_never_grants_more_than_was_shown(self, visitor: Browser, device: Device):
        review(visitor, device.user_code)
        more = {**visitor.sends("Approve"), "grant.projects.write": "yes", "grant.": "yes"}
        assert visitor.forge(APPROVE, more).status == 200
        assert device.redeem().data["scope"] == "billing.read projects.read"

    def test_approving_without_scopes_asks_again(self, visitor: Browser, device: Device):
        review(visitor, device.user_code)
        reply = visitor.press("Approve", fill={"billing.read": False, "projects.read": False})
        assert reply.status == 400
        assert "<title>Error: Approve or deny a device" in reply.text
        assert '<a href="#grant-billing.read">Select at least one permission, or deny the device.</a>' in reply.text
        assert status_of(device) == "authorization_pending"
        assert visitor.press("Approve", fill={"projects.read": True}).status == 200


class TestDenied:
    def test_denying_takes_one_click(self, visitor: Browser, device: Device):
        review(visitor, device.user_code)
        reply = visitor.press("Deny")
        assert reply.status == 200
        assert "Device denied" in text_of(reply)
        assert device.redeem().status == 403


class TestRefusedCode:
    def test_an_unknown_code_returns_404_and_the_form(self, visitor: Browser):
        reply = review(visitor, "BBBB-BBBB")
        assert reply.status == 404
        assert "<title>Error: " in reply.text
        assert '<a href="#user_code">No request has this code.' in reply.text
        assert 'aria-invalid="true"' in reply.text
        assert 'value="BBBB-BBBB"' in reply.text

    @pytest.mark.parametrize("code", ["", "   ", "\t"])
    def test_an_empty_code_returns_400(self, visitor: Browser, code: str):
        assert review(visitor, code).status == 400

    def test_an_expired_code_returns_409(self, visitor: Browser, device: Device, now):
        now.advance(900)
        reply = review(visitor, device.user_code)
        assert reply.status == 409
        assert "expired" in text_of(reply)

    @pytest.mark.parametrize("decision", ["Approve", "Deny"])
    def test_a_decided_code_returns_409(self, visitor: Browser, device: Device, decision: str):
        review(visitor, device.user_code)
        visitor.press(decision)
        assert review(visitor, device.user_code).status == 409

    def test_the_sixth_person_who_looks_up_a_code_gets_404(self, api: Api, world: World, device: Device):
        for _ in range(5):
            assert review(Browser(api).signed_in(world.person().user_id), device.user_code).status == 200
        assert review(Browser(api).signed_in(world.person().user_id), device.user_code).status == 404
        assert status_of(device) == "authorization_pending"

    def test_reloading_the_page_does_not_lock_the_user_out(self, visitor: Browser, device: Device):
        for _ in range(12):
            assert review(visitor, device.user_code).status == 200

    def test_the_sixth_wrong_code_in_15_minutes_returns_429(self, visitor: Browser, device: Device, now):
        for _ in range(5):
            assert review(visitor, "BBBB-BBBB").status == 404
        reply = review(visitor, device.user_code)
        assert reply.status == 429
        assert int(reply.headers["retry-after"]) <= 900
        now.advance(900)
        assert review(visitor, "BBBB-BBBB").status == 404


class TestRefusedDecision:
    @pytest.mark.parametrize("action", [APPROVE, DENY])
    def test_deciding_on_a_code_that_was_not_shown_returns_403(self, visitor: Browser, device: Device, action: str):
        fields = {
            "user_code": device.user_code,
            "until": "1772601667",
            "scopes": "billing.read projects.read",
            "seal": "0" * 64,
        }
        assert visitor.forge(action, fields).status == 403
        assert status_of(device) == "authorization_pending"

    @pytest.mark.parametrize(
        "changes",
        [
            {"scopes": "billing.read projects.read projects.write"},
            {"scopes": ""},
            {"until": "9999999999"},
            {"until": "-1"},
            {"until": "\u0661"},
            {"until": "9" * 500},
            {"until": ""},
            {"user_code": "BBBB-BBBB"},
            {"seal": ""},
            {"seal": "é"},
        ],
    )
    def test_a_decision_that_differs_from_what_was_shown_returns_403(self, visitor: Browser, device, changes):
        review(visitor, device.user_code)
        assert visitor.forge(APPROVE, {**visitor.sends("Approve"), **changes}).status == 403
        assert status_of(device) == "authorization_pending"

    def test_a_decision_from_another_session_returns_403(self, visitor: Browser, device: Device, world: World):
        review(visitor, device.user_code)
        other = Browser(visitor.api).signed_in(world.person().user_id)
        assert other.forge(APPROVE, {**visitor.sends("Approve"), "form_token": other.form_token}).status == 403
        assert status_of(device) == "authorization_pending"

    @pytest.mark.parametrize("action", ["Approve", "Deny"])
    def test_a_decision_after_expiry_returns_409(self, visitor: Browser, device: Device, action: str, now):
        review(visitor, device.user_code)
        now.advance(900)
        assert visitor.press(action).status == 409

    @pytest.mark.parametrize("action", ["Approve", "Deny"])
    def test_a_decision_after_five_wrong_codes_returns_429(self, visitor: Browser, device: Device, action: str):
        page = review(visitor, device.user_code)
        for _ in range(5):
            review(visitor, "BBBB-BBBB")
        reply = visitor.press(action, on=page)
        assert reply.status == 429
        assert int(reply.headers["retry-after"]) <= 900
        assert status_of(device) == "authorization_pending"

    def test_a_decision_after_another_persons_returns_409(self, visitor: Browser, device: Device, world: World):
        other = Browser(visitor.api).signed_in(world.person().user_id)
        review(other, device.user_code)
        review(visitor, device.user_code)
        assert visitor.press("Deny").status == 200
        assert other.press("Approve").status == 409
        assert device.redeem().status == 403


class TestSwitchedOff:
    def test_disabled_device_sign_in_has_no_page_and_no_link(self, visitor: Browser, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)
        assert visitor.get("/device").status == 404
        assert "/device" not in visitor.get("/").text
        for action in ("/device", APPROVE, DENY):
            assert visitor.forge(action).status == 404

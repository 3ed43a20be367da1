"""People, devices, and API keys in the deployed product: sign-in, authorization, roles, and setup."""

from typing import Any

from tests.e2e.deployment import Stack
from tests.e2e.people import Caller, Device, Person
from tests.e2e.story import ApprovedDevice, Organization, Reported
from tests.support.browser import text_of
from tests.support.world import ALL_SCOPES


class TestSignIn:
    def test_a_session_authenticates_its_user_at_the_api_too(self, stack: Stack, ada: Person):
        principal = Caller(stack, ada.browser.secret)(200, "GET", "/v1/me")["principal"]
        assert principal["type"] == "session"

    def test_a_second_sign_in_finds_the_same_account(self, stack: Stack, ada: Person):
        def user_id() -> str:
            found: str = Caller(stack, ada.browser.secret)(200, "GET", "/v1/me")["principal"]["userId"]
            return found

        before = user_id()
        ada.sign_in("/organizations")
        assert user_id() == before


class TestDevice:
    def test_the_device_waits_is_shown_with_its_request_and_refreshes_its_token(self, approved_device: ApprovedDevice):
        assert (approved_device.waiting.status, approved_device.waiting.code) == (409, "CONFLICT")
        for shown in (approved_device.device.user_code, "Ada's laptop", "projects.write"):
            assert shown in approved_device.review
        assert approved_device.refreshed.status == 200, approved_device.refreshed.text

    def test_the_device_acts_as_the_user_with_every_scope(self, call: Caller):
        me = call(200, "GET", "/v1/me")
        assert me["principal"]["type"] == "oauth"
        assert me["scopes"] == ALL_SCOPES


class TestOrganization:
    def test_the_organization_is_on_the_plan_that_the_operator_set(self, organization: Organization):
        assert (organization.founded["plan"]["id"], organization.raised["plan"]["id"]) == ("free", "starter")

    def test_the_accepting_user_is_a_member_of_the_organization(
        self, call: Caller, organization: Organization, grace: Person
    ):
        target = f"/v1/members?organizationId={organization.organization_id}"
        roles = {it["user"]["email"]: it["role"] for it in call(200, "GET", target)}
        assert roles[grace.email] == "admin"
        assert call(200, "GET", "/v1/invitations") == []

    def test_the_organization_is_made_the_default_on_its_page(self, stack: Stack, grace: Person):
        Caller(stack, grace.browser.secret)(201, "POST", "/v1/organizations", {"name": "Aside"})
        assert "Aside" in text_of(grace.open(200, "/organizations"))
        assert "is saved as your default organization." in text_of(grace.press_and_follow("Make default", near="Aside"))


class TestProject:
    def test_the_project_is_found_with_an_api_key(self, stack: Stack, project: dict[str, Any], key: str):
        caller = Caller(stack, key)
        assert [it["projectId"] for it in caller(200, "GET", "/v1/projects")] == [project["id"]]
        consent = caller(200, "GET", f"/v1/projects/{project['id']}/consent")
        assert len(consent["trustedOrigins"]) == 3

    def test_the_projects_dashboard_url_leads_to_its_page(self, ada: Person, project: dict[str, Any]):
        assert "Web shop" in text_of(ada.open(200, project["dashboardUrl"]))


class TestFeedback:
    def test_feedback_is_accepted_once_a_day(self, reported: Reported):
        assert (reported.first.status, reported.again.status) == (201, 200)
        reference = reported.first.data["reference"]
        assert reference.startswith("FDB-")
        assert reported.again.data == {"reference": reference, "alreadySubmitted": True}


class TestSignOut:
    def test_signing_out_ends_the_session_as_a_cookie_and_as_a_bearer_token(self, stack: Stack, ada: Person):
        person = Person(stack, "emmy@example.com", "Emmy Noether")
        person.sign_in("/organizations")
        session = person.browser.secret
        left = person.press(303, "Sign out")
        assert "signed out" in text_of(person.open(200, left.headers["location"]))
        assert "/sign-in?" in person.open(303, "/organizations").headers["location"]
        Caller(stack, session).ask(401, "GET", "/v1/me")

    def test_signing_out_a_device_revokes_all_its_tokens(self, stack: Stack, ada: Person):
        device = Device(stack, "Ada's tablet")
        device.approved_by(ada)
        device.redeem()
        Caller(stack, device.access_token).ask(200, "GET", "/v1/me")
        assert device.sign_out().status == 200
        Caller(stack, device.access_token).ask(401, "GET", "/v1/me")
        assert device.refresh().body["error"] == "invalid_grant"

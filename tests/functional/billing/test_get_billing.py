"""GET /v1/billing: the plan with its limits and features, the balance, the top-up settings."""

from controlplane.store import billing, keys
from controlplane.store.table import Update, table
from tests.functional.conftest import FakeClock
from tests.support.api import Api
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import ALL_SCOPES, World

PLANS = {
    "free": ("Free", (0, 10), (False, False)),
    "starter": ("Starter", (600, 50), (True, False)),
    "pro": ("Pro", (1500, 200), (True, True)),
    "enterprise": ("Enterprise", (3000, 1000), (True, True)),
}


class Test200:
    @each("plan", PLANS)
    def test_returns_the_limits_of_each_plan(self, plan, api: Api, world: World):
        company = world.company(plan)
        name, (rate, projects), (api_access, remove_branding) = PLANS[plan]
        assert api.get("/v1/billing", company.owner.token).data == {
            "organizationId": company.organization_id,
            "plan": {"id": plan, "name": name},
            "credits": {"balance": 0},
            "topUp": {
                "enabled": False,
                "threshold": None,
                "amount": None,
                "monthlyLimit": None,
                "usedThisMonth": 0,
            },
            "limits": {"requestsPerMinute": rate, "apiKeys": 50 if api_access else 0, "projects": projects},
            "features": {"apiAccess": api_access, "removeBranding": remove_branding},
            "usage": {"apiKeys": 0, "projects": 0},
            "overLimit": [],
        }

    def test_returns_the_stored_balance_and_top_up_settings(self, api: Api, world: World):
        company = world.company()
        world.credits(company, 120)
        world.credits(company, -20)
        billing.enable_top_up(company.organization_id, threshold=20, amount=100, monthly_limit=3)
        read = api.get("/v1/billing", company.owner.token).data
        assert read["credits"] == {"balance": 100}
        top_up = {"enabled": True, "threshold": 20, "amount": 100, "monthlyLimit": 3}
        assert read["topUp"] == {**top_up, "usedThisMonth": 0}

    def test_returns_the_top_ups_of_this_month(self, api: Api, world: World, now: FakeClock):
        company = world.company()
        billing.enable_top_up(company.organization_id, threshold=20, amount=100, monthly_limit=3)
        expected = {"enabled": True, "threshold": 20, "amount": 100, "monthlyLimit": 3, "usedThisMonth": 0}
        assert api.get("/v1/billing", company.owner.token).data["topUp"] == expected
        change = Update(
            keys.billing(company.organization_id), "SET #topUp.#month = :month, #topUp.#used = :used", None,
            {"month": "2026-03", "used": 2},
        )  # fmt: skip
        table.update(change, PREPARED)
        assert api.get("/v1/billing", company.owner.token).data["topUp"] == {**expected, "usedThisMonth": 2}
        now.seconds += 28 * 86_400
        token = world.token(company.owner.user_id)
        assert api.get("/v1/billing", token).data["topUp"] == expected

    def test_any_member_and_a_key_can_read_billing(self, api: Api, world: World):
        company = world.company()
        for secret in (world.member(company).token, world.key(company)):
            assert api.get("/v1/billing", secret).data["organizationId"] == company.organization_id

    def test_a_plan_change_is_visible_at_once(self, api: Api, world: World):
        company = world.company("starter")
        billing.change_plan(company.organization_id, "enterprise")
        assert api.get("/v1/billing", company.owner.token).data["plan"]["id"] == "enterprise"

    def test_returns_the_billing_of_the_named_organization(self, api: Api, world: World):
        first = world.company()
        second = world.company("starter", owner=first.owner)
        read = api.get(f"/v1/billing?organizationId={second.organization_id}", first.owner.token)
        assert read.data["plan"]["id"] == "starter"

    def test_a_key_makes_two_round_trips_and_a_user_three(self, api: Api, world: World):
        company = world.company()
        secret = world.key(company)
        for credential in (secret, company.owner.token):
            api.get("/v1/billing", credential)
        for credential, most in ((secret, 2), (company.owner.token, 3)):
            with recorded_calls() as calls:
                api.get("/v1/billing", credential)
            assert len(calls) == most


class TestRefused:
    def test_returns_402_for_a_key_on_the_free_plan_but_not_for_a_user(self, api: Api, world: World):
        company = world.company()
        secret = world.key(company)
        billing.change_plan(company.organization_id, "free")
        assert api.get("/v1/billing", secret).code == "PLAN_REQUIRED"
        assert api.get("/v1/billing", company.owner.token).status == 200

    def test_returns_403_without_the_scope(self, api: Api, world: World):
        token = world.token(world.company().owner.user_id, [s for s in ALL_SCOPES if s != "billing.read"])
        reply = api.get("/v1/billing", token)
        assert reply.code == "INSUFFICIENT_SCOPE"
        assert reply.error["details"] == {"requiredScope": "billing.read"}

    @each("named", ["org_x", "org_0000000000000000", "%00", "..", "ORG%23x"])
    def test_returns_403_or_400_for_an_organization_of_others(self, named, api: Api, world: World):
        reply = api.get(f"/v1/billing?organizationId={named}", world.company().owner.token)
        assert (reply.status, reply.code) in {(403, "FORBIDDEN"), (400, "INVALID_PAYLOAD")}

    def test_returns_403_for_another_organization_with_a_key(self, api: Api, world: World):
        other = world.company()
        reply = api.get(f"/v1/billing?organizationId={other.organization_id}", world.key(world.company()))
        assert reply.code == "FORBIDDEN"

    def test_returns_400_if_several_organizations_and_none_is_named(self, api: Api, world: World):
        first = world.company()
        world.company(owner=first.owner)
        world.clear_default(first.owner)
        assert api.get("/v1/billing", first.owner.token).code == "INVALID_PAYLOAD"

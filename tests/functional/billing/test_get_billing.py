"""GET /v1/billing: the plan with its limits and features, the balance, the top-up settings."""

from controlplane.billing import store as billing
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED

PLANS = {
    "free": ("Free", (0, 10), (False, False)),
    "starter": ("Starter", (600, 50), (True, False)),
    "pro": ("Pro", (1500, 200), (True, True)),
    "enterprise": ("Enterprise", (3000, 1000), (True, True)),
}


@each("plan", PLANS)
def test_returns_the_limits_of_each_plan(plan, api, world):
    company = world.company(plan)
    name, (rate, projects), (api_access, remove_branding) = PLANS[plan]
    shown = {
        "organizationId": company.organization_id,
        "plan": {"id": plan, "name": name},
        "credits": {"balance": 0},
        "topUp": {"enabled": False, "threshold": None, "amount": None, "monthlyLimit": None, "usedThisMonth": 0},
        "limits": {"requestsPerMinute": rate, "apiKeys": 50 if api_access else 0, "projects": projects},
        "features": {"apiAccess": api_access, "removeBranding": remove_branding},
        "usage": {"apiKeys": 0, "projects": 0},
        "overLimit": [],
        "contact": None,
    }
    assert api.get("/v1/billing", company.owner.token).data == shown
    assert api.get("/v1/billing", world.member(company).token).data == shown


def test_returns_the_balance_and_the_top_ups_of_this_month(api, world):
    company = world.company()
    world.credits(company, 120)
    world.credits(company, -20)
    billing.enable_top_up(company.organization_id, threshold=20, amount=100, monthly_limit=3)
    key = keys.billing(company.organization_id)
    for month, used, shown in ((None, 0, 0), ("2026-03", 2, 2), ("2026-02", 2, 0)):
        if month:
            values = {"month": month, "used": used}
            table.update(Update(key, "SET #topUp.#month = :month, #topUp.#used = :used", None, values), PREPARED)
        read = api.get("/v1/billing", company.owner.token).data
        top_up = {"enabled": True, "threshold": 20, "amount": 100, "monthlyLimit": 3, "usedThisMonth": shown}
        assert (read["credits"], read["topUp"]) == ({"balance": 100}, top_up)


def test_a_key_makes_two_round_trips_and_a_user_three_and_a_key_needs_a_plan_with_keys(api, world):
    company = world.company()
    key = world.key(company)
    for credential, most in ((key, 2), (company.owner.token, 3)):
        api.get("/v1/billing", credential)
        with recorded_calls() as calls:
            assert api.get("/v1/billing", credential).data["plan"]["id"] == "pro"
        assert len(calls) == most
    billing.change_plan(company.organization_id, "free")
    assert api.get("/v1/billing", key).code == "PLAN_REQUIRED"
    assert api.get("/v1/billing", company.owner.token).data["plan"]["id"] == "free"


def test_names_whom_to_ask_for_a_plan_or_credits(api, world, monkeypatch):
    company = world.company()
    key = world.key(company)
    billing.change_plan(company.organization_id, "free")
    assert "Ask the operator of this service to change" in api.get("/v1/billing", key).error["message"]
    for contact in ("sales@example.com", "https://example.com/plans"):
        monkeypatch.setitem(settings.__dict__, "contact", contact)
        assert api.get("/v1/billing", company.owner.token).data["contact"] == contact
        refused = api.get("/v1/billing", key)
        for text in (refused.error["message"], refused.guidance["hint"]):
            assert f"Ask the operator of this service ({contact}) to change the plan" in text

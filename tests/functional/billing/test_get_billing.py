"""GET /v1/billing: the plan with its limits and features, the balance, the top-up settings."""

import pytest

from controlplane.store import billing, keys
from controlplane.store.table import Update, table
from tests.functional.projects.test_create_project import fill
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED

NO_TOP_UP = {"enabled": False, "threshold": None, "amount": None, "monthlyLimit": None, "usedThisMonth": 0}


@pytest.fixture
def read(api):
    def get(company, who=None):
        path = f"/v1/billing?organizationId={company.organization_id}"
        return api.get(path, who or company.owner.token).data

    return get


@each(
    ("plan", "limits", "features"),
    [
        ("free", (0, 0, 10), (False, False)),
        ("starter", (600, 50, 50), (True, False)),
        ("pro", (1500, 50, 200), (True, True)),
        ("enterprise", (3000, 50, 1000), (True, True)),
    ],
)
def test_each_plan_has_its_limits_and_features_for_every_member_and_key(plan, limits, features, world, read):
    company = world.company(plan)
    shown = {
        "organizationId": company.organization_id,
        "plan": {"id": plan, "name": plan.title()},
        "credits": {"balance": 0},
        "topUp": NO_TOP_UP,
        "limits": dict(zip(("requestsPerMinute", "apiKeys", "projects"), limits, strict=True)),
        "features": dict(zip(("apiAccess", "removeBranding"), features, strict=True)),
        "usage": {"apiKeys": 0, "projects": 0},
        "overLimit": [],
    }
    assert read(company) == read(company, world.member(company).token) == shown
    if features[0]:
        used = {**shown, "usage": {"apiKeys": 1, "projects": 0}}
        assert read(company, world.key(company)) == used


def test_the_balance_the_plan_and_the_top_ups_of_this_month_are_current(world, read, now):
    company = world.company("starter")
    world.credits(company, 120)
    world.credits(company, -20)
    billing.change_plan(company.organization_id, "enterprise")
    billing.enable_top_up(company.organization_id, threshold=20, amount=100, monthly_limit=3)
    shown = read(company)
    top_up = {"enabled": True, "threshold": 20, "amount": 100, "monthlyLimit": 3, "usedThisMonth": 0}
    assert (shown["plan"]["id"], shown["credits"], shown["topUp"]) == ("enterprise", {"balance": 100}, top_up)
    change, used = "SET #topUp.#month = :month, #topUp.#used = :used", {"month": "2026-03", "used": 2}
    table.update(Update(keys.billing(company.organization_id), change, None, used), PREPARED)
    assert read(company)["topUp"] == {**top_up, "usedThisMonth": 2}
    now.seconds += 28 * 86_400
    assert read(company, world.token(company.owner.user_id))["topUp"] == top_up


def test_a_key_makes_two_round_trips_and_a_user_three(world, read):
    company = world.company()
    for who, most in ((world.key(company), 2), (company.owner.token, 3)):
        read(company, who)
        with recorded_calls() as calls:
            read(company, who)
        assert len(calls) == most


def test_what_is_over_the_limit_is_named(world, read):
    company = world.company("pro")
    for _ in range(3):
        world.key(company)
    fill(company, 60)
    projects = {"limit": "projects", "current": 60}
    for plan, over in (
        ("pro", []),
        ("starter", [{**projects, "maximum": 50}]),
        ("free", [{"limit": "apiKeys", "current": 3, "maximum": 0}, {**projects, "maximum": 10}]),
    ):
        billing.change_plan(company.organization_id, plan)
        shown = read(company)
        assert (shown["overLimit"], shown["usage"]) == (over, {"apiKeys": 3, "projects": 60})
    full = world.company("free")
    fill(full, 10)
    assert read(full)["overLimit"] == []

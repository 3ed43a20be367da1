"""GET /v1/billing, and a smaller plan: it applies at once, and what exceeds it stays readable and can't grow."""

import pytest

from controlplane.access.authentication import limit_of_plan
from controlplane.billing import store as billing
from controlplane.platform.core import clock
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from controlplane.scans import queue
from controlplane.scans.items import Cause, QueuedScan
from controlplane.scans.queue import is_wanted, start_next
from tests.functional.github_events.conftest import connect
from tests.functional.projects.builders import fill
from tests.functional.scan_preparation.test_prepare_scan import Line
from tests.support.audits import make_issue, make_scan
from tests.support.calls import before_the_transaction
from tests.support.each import each
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


@pytest.fixture
def company(world):
    return world.company("pro")


def downgrade(company, plan: str = "free") -> None:
    billing.change_plan(company.organization_id, plan)


# Tests of `api_keys` and `projects` cover the other limits of a smaller plan.
def test_pull_request_scans_end(company):
    [link] = connect(company, pull_request_scans_enabled=True).links
    cause = Cause("pull_request", 7)
    assert [is_wanted(cause, link, plan) for plan in ("pro", "free")] == [True, False]


def test_automatic_scans_wait_for_fewer_that_run(world, company, sqs):
    repository = connect(company, scan_on_push=True)
    make_scan(world.connected_repository(company), status="running")
    queue.enqueue(QueuedScan.of(repository.repository_id, repository.links[0].project_id, Cause("push")))
    downgrade(company)
    assert not start_next(repository.repository_id)
    billing.change_plan(company.organization_id, "pro")
    assert start_next(repository.repository_id)


def test_the_smaller_rate_of_the_organization_applies(company, api):
    count = keys.owner_count(company.organization_id, int(clock.now() // 60))
    hits = limit_of_plan("free") + 100
    table.update(Update(count, "SET #hits = :hits", values={"hits": hits}), PREPARED)

    def statuses():
        return {api.get("/v1/billing", company.owner.token).status for _ in range(30)}

    assert statuses() == {200}
    downgrade(company)
    assert statuses() == {200, 429}


def test_earlier_reports_stay_full_and_new_ones_are_previews(company, api, world, sqs):
    line = Line(world, sqs, company)
    full = make_scan(line.repository, again="full", issues=[make_issue(1)])
    downgrade(company)
    assert len(api.get(f"/v1/code-audit/scans/{full.scan_id}/issues", company.owner.token).data["issues"]) == 1
    line.deliver()
    assert line.scan.access == "free-preview"


def test_billing_says_what_is_over_the_limit(company, api, world):
    for _ in range(3):
        world.key(company)
    fill(company, 60)
    for plan, expected in (
        ("pro", []),
        ("starter", [{"limit": "projects", "current": 60, "maximum": 50}]),
        (
            "free",
            [
                {"limit": "apiKeys", "current": 3, "maximum": 0},
                {"limit": "projects", "current": 60, "maximum": 10},
            ],
        ),
    ):
        downgrade(company, plan)
        shown = api.get("/v1/billing", company.owner.token).data
        assert (shown["overLimit"], shown["usage"]) == (expected, {"apiKeys": 3, "projects": 60})
    full = world.company("free")
    fill(full, 10)
    assert api.get("/v1/billing", full.owner.token).data["overLimit"] == []


def test_a_top_up_is_disabled_with_the_settings_that_it_got_meanwhile(company):
    def enable(threshold):
        billing.enable_top_up(company.organization_id, threshold=threshold, amount=100, monthly_limit=3)

    enable(10)
    with before_the_transaction(table.client, lambda: enable(20)):
        billing.disable_top_up(company.organization_id)
    top_up = billing.get_billing(company.organization_id)[1].top_up
    assert (top_up.enabled, top_up.threshold) == (False, 20)

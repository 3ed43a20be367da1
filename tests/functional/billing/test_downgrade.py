"""A smaller plan applies at once: what exceeds it stays readable and can't grow, and the billing says so."""

from dataclasses import fields

import pytest

from controlplane.access.authentication import limit_of_plan
from controlplane.billing import store as billing
from controlplane.platform.core import clock
from controlplane.platform.core.plans import Plan
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from controlplane.scans import queue
from controlplane.scans.items import Cause, QueuedScan
from controlplane.scans.queue import is_wanted, start_next
from tests.functional.github_events.conftest import connect
from tests.functional.projects.builders import fill, make_project
from tests.functional.scan_preparation.test_prepare_scan import Line
from tests.support.audit_log import all_entries
from tests.support.audits import make_issue, make_scan
from tests.support.calls import before_the_transaction
from tests.support.table import PREPARED


@pytest.fixture
def company(world):
    return world.company("pro")


def downgrade(company, plan: str = "free") -> None:
    billing.change_plan(company.organization_id, plan)


class TestEveryLimit:
    """Each of these tests a field of `Plan`."""

    def test_the_limits_are_those_that_this_class_tests(self):
        tested = {name.removeprefix("test_").partition("__")[0] for name in dir(TestEveryLimit)}
        limits = {field.name for field in fields(Plan)} - {"id", "name"}
        assert limits <= tested

    def test_pull_request_scans__end(self, company):
        [link] = connect(company, pull_request_scans_enabled=True).links
        cause = Cause("pull_request", 7)
        assert [is_wanted(cause, link, plan) for plan in ("pro", "free")] == [True, False]

    def test_automatic_scans__wait_for_fewer_that_run(self, world, company, sqs):
        repository = connect(company, scan_on_push=True)
        make_scan(world.connected_repository(company), status="running")
        queue.enqueue(QueuedScan.of(repository.repository_id, repository.links[0].project_id, Cause("push")))
        downgrade(company)
        assert not start_next(repository.repository_id)
        billing.change_plan(company.organization_id, "pro")
        assert start_next(repository.repository_id)

    def test_projects__stay_usable_and_none_can_be_added(self, company, api):
        project = make_project(company)
        fill(company, 14)
        downgrade(company)
        token, path = company.owner.token, f"/v1/projects/{project.project_id}"
        assert len(api.get("/v1/projects", token).data) == 1
        assert api.get(path, token).status == 200
        assert api.patch(path, token, json_body={"description": "Changed"}).status == 200
        reply = api.post("/v1/projects", token, json_body={"name": "Shop", "region": "eu-central"})
        assert (reply.status, reply.code) == (402, "PLAN_LIMIT_REACHED")
        assert reply.error["details"] == {"limit": 10, "current": 14, "plan": "free"}
        assert api.delete(path, token).status == 200

    def test_api_access__keys_are_listed_and_deleted_but_neither_used_created_nor_rolled(self, company, api, world):
        secret, token = world.key(company), company.owner.token
        downgrade(company)
        (key,) = api.get("/v1/api-keys", token).data
        assert api.get("/v1/me", secret).code == "PLAN_REQUIRED"
        assert api.post("/v1/api-keys", token, json_body={"name": "deploy"}).code == "PLAN_REQUIRED"
        assert api.post(f"/v1/api-keys/{key['keyId']}/roll", token).code == "PLAN_REQUIRED"
        downgrade(company, "starter")
        assert api.get("/v1/me", secret).status == 200
        downgrade(company)
        assert api.delete(f"/v1/api-keys/{key['keyId']}", token).status == 200

    def test_requests_per_minute__a_key_keeps_the_rate_that_it_was_created_with(self, company, api, world):
        secret, token = world.key(company), company.owner.token
        downgrade(company, "starter")
        assert api.get("/v1/me", secret).headers["x-ratelimit-limit"] == "1500"
        (key,) = api.get("/v1/api-keys", token).data
        rolled = api.post(f"/v1/api-keys/{key['keyId']}/roll", token).data
        assert rolled["rateLimit"] == 600

    def test_organization_rate__the_smaller_limit_applies(self, company, api):
        count = keys.owner_count(company.organization_id, int(clock.now() // 60))
        hits = limit_of_plan("free") + 100
        table.update(Update(count, "SET #hits = :hits", values={"hits": hits}), PREPARED)

        def statuses():
            return {api.get("/v1/billing", company.owner.token).status for _ in range(30)}

        assert statuses() == {200}
        downgrade(company)
        assert statuses() == {200, 429}

    def test_remove_branding__the_services_branding_is_served(self, company, api):
        project = make_project(company, branding="none")
        downgrade(company)
        shown = api.get(f"/v1/projects/{project.project_id}", company.owner.token).data
        assert shown["consent"]["branding"] == "assent"

    def test_full_scans__earlier_reports_stay_full_and_new_ones_are_previews(self, company, api, world, sqs):
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


def test_concurrent_changes_of_the_plan_are_recorded_and_those_of_the_top_up_both_made(company):
    with before_the_transaction(table.client, lambda: downgrade(company, "starter")):
        downgrade(company, "free")
    changes = [it for it in all_entries() if it["action"] == "organization.change_plan"]
    made = {("free", "pro"), ("pro", "starter"), ("starter", "free")}
    assert {(it["before"]["plan"], it["after"]["plan"]) for it in changes} == made

    def enable(threshold):
        billing.enable_top_up(company.organization_id, threshold=threshold, amount=100, monthly_limit=3)

    enable(10)
    with before_the_transaction(table.client, lambda: enable(20)):
        billing.disable_top_up(company.organization_id)
    top_up = billing.get_billing(company.organization_id)[1].top_up
    assert (top_up.enabled, top_up.threshold) == (False, 20)

"""A smaller plan applies at once: what exceeds it stays readable and can't grow."""

from dataclasses import fields

import pytest

from controlplane.core import clock
from controlplane.core.plans import Plan
from controlplane.http.owner_limits import limit_of_plan
from controlplane.queues.scan_starts import is_wanted, start_next
from controlplane.store import billing, keys
from controlplane.store.scans import queue, reads
from controlplane.store.scans.causes import Cause
from controlplane.store.scans.queue import QueuedScan
from controlplane.store.table import Update, table
from tests.functional.github_events.conftest import connect
from tests.functional.projects.builders import make_project
from tests.functional.projects.test_create_project import fill
from tests.functional.scan_preparation.test_prepare_scan import prepare
from tests.support.audit_log import all_entries
from tests.support.audits import make_issue, make_scan, serving
from tests.support.calls import before_the_transaction
from tests.support.table import PREPARED


@pytest.fixture
def company(world):
    return world.company("pro")


@pytest.fixture
def send(api, company):
    return lambda method, path, body=None: api.call(method, f"/v1{path}", company.owner.token, json_body=body)


def downgrade(company, plan="free"):
    billing.change_plan(company.organization_id, plan)


def test_each_limit_of_a_plan_is_tested_here():
    tested = {name.removeprefix("test_").partition("__")[0] for name in globals()}
    assert {field.name for field in fields(Plan)} - {"id", "name"} <= tested


def test_pull_request_scans__end(company):
    [link] = connect(company, pull_request_scans_enabled=True).links
    cause = Cause("pull_request", 7)
    assert [is_wanted(cause, link, plan) for plan in ("pro", "free")] == [True, False]


def test_automatic_scans__wait_for_fewer_that_run(world, company, sqs):
    repository = connect(company, scan_on_push=True)
    make_scan(world.connected_repository(company), status="running")
    queue.enqueue(QueuedScan.of(repository.repository_id, repository.links[0].project_id, Cause("push")))
    downgrade(company)
    assert not start_next(repository.repository_id)
    downgrade(company, "pro")
    assert start_next(repository.repository_id)


def test_projects__stay_usable_and_none_can_be_added(company, send):
    path = f"/projects/{make_project(company).project_id}"
    fill(company, 14)
    downgrade(company)
    assert (len(send("GET", "/projects").data), send("GET", path).status) == (1, 200)
    assert send("PATCH", path, {"description": "Changed"}).status == 200
    reply = send("POST", "/projects", {"name": "Shop", "region": "eu-central"})
    assert (reply.status, reply.code) == (402, "PLAN_LIMIT_REACHED")
    assert reply.error["details"] == {"limit": 10, "current": 14, "plan": "free"}
    assert send("DELETE", path).status == 200


def test_api_access__keys_are_listed_and_deleted_but_neither_used_created_nor_rolled(company, api, world, send):
    secret = world.key(company)
    downgrade(company)
    (key,) = send("GET", "/api-keys").data
    path = f"/api-keys/{key['keyId']}"
    refused = [api.get("/v1/me", secret), send("POST", "/api-keys", {"name": "deploy"}), send("POST", f"{path}/roll")]
    assert [reply.code for reply in refused] == ["PLAN_REQUIRED"] * 3
    downgrade(company, "starter")
    assert api.get("/v1/me", secret).status == 200
    downgrade(company)
    assert send("DELETE", path).status == 200


def test_requests_per_minute__a_key_keeps_the_rate_that_it_was_created_with(company, api, world, send):
    secret = world.key(company)
    downgrade(company, "starter")
    assert api.get("/v1/me", secret).headers["x-ratelimit-limit"] == "1500"
    (key,) = send("GET", "/api-keys").data
    assert send("POST", f"/api-keys/{key['keyId']}/roll").data["rateLimit"] == 600


def test_organization_rate__the_smaller_limit_applies(company, send):
    count = keys.owner_count(company.organization_id, int(clock.now() // 60))
    hits = limit_of_plan("free") + 100
    table.update(Update(count, "SET #hits = :hits", values={"hits": hits}), PREPARED)
    assert {send("GET", "/billing").status for _ in range(30)} == {200}
    downgrade(company)
    assert {send("GET", "/billing").status for _ in range(30)} == {200, 429}


def test_remove_branding__the_services_branding_is_served(company, send):
    project = make_project(company, branding="none")
    downgrade(company)
    assert send("GET", f"/projects/{project.project_id}").data["consent"]["branding"] == "assent"


def test_full_scans__earlier_reports_stay_full_and_new_ones_are_locked(company, world, sqs, send):
    repository = world.connected_repository(company)
    full = make_scan(repository, again="full", issues=[make_issue(1)])
    downgrade(company)
    assert len(send("GET", f"/code-audit/scans/{full.scan_id}/issues").data["issues"]) == 1
    request = prepare(sqs, repository, serving(repository))
    assert reads.get_scan(request.scan_id or full.scan_id).access == "locked"


def test_concurrent_changes_of_the_plan_are_recorded_as_they_were_made(company):
    with before_the_transaction(table.client, lambda: downgrade(company, "starter")):
        downgrade(company, "free")
    changes = [it for it in all_entries() if it["action"] == "organization.change_plan"]
    made = {(it["before"]["plan"], it["after"]["plan"]) for it in changes}
    assert made == {("free", "pro"), ("pro", "starter"), ("starter", "free")}


def test_concurrent_changes_of_the_top_up_are_both_made(company):
    def enable(threshold):
        billing.enable_top_up(company.organization_id, threshold=threshold, amount=100, monthly_limit=3)

    enable(10)
    with before_the_transaction(table.client, lambda: enable(20)):
        billing.disable_top_up(company.organization_id)
    top_up = billing.get_billing(company.organization_id)[1].top_up
    assert (top_up.enabled, top_up.threshold) == (False, 20)

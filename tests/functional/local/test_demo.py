"""The demo data of a local run."""

import json
from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.findings import inbox
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.scans import reads
from local.demo import create_demo
from tests.support.api import Api
from tests.support.sqs import FakeSqs


@pytest.fixture
def demo() -> dict[str, Any]:
    return create_demo("http://127.0.0.1:3000")


def of_plan(demo: dict[str, Any], plan: str) -> str:
    return next(it["organizationId"] for it in demo["organizations"] if it["plan"] == plan)


def test_the_demo_returns_everything_needed_to_use_it(demo: dict[str, Any]):
    assert set(demo) == {"organizations", "users", "apiKeys", "repositories"}
    assert {it["plan"] for it in demo["organizations"]} == {"free", "pro"}
    pro, free = of_plan(demo, "pro"), of_plan(demo, "free")
    assert {it["role"] for it in demo["users"] if it["organizationId"] == pro} == {"owner", "admin", "member"}
    assert [it["organizationId"] for it in demo["users"] if it["organizationId"] != pro] == [free]
    assert all(set(it) == {"email", "name", "userId", "accessToken", "role", "organizationId"} for it in demo["users"])
    assert [it["organizationId"] for it in demo["apiKeys"]] == [pro]


def test_every_token_and_key_works(api: Api, demo: dict[str, Any]):
    for user in demo["users"]:
        me = api.get("/v1/me", user["accessToken"]).data
        assert me["principal"]["userId"] == user["userId"]
        assert [(it["id"], it["role"]) for it in me["organizations"]] == [(user["organizationId"], user["role"])]
        assert me["scopes"] == sorted(SCOPES)
    (key,) = demo["apiKeys"]
    principal = api.get("/v1/me", key["key"]).data["principal"]
    assert (principal["keyId"], principal["organizationId"]) == (key["keyId"], key["organizationId"])


def test_the_pro_organization_has_credits_a_project_websites_and_an_audit(demo: dict[str, Any]):
    pro = of_plan(demo, "pro")
    organization, account = billing.get_billing(pro)
    assert (organization.plan, account.credits) == ("pro", 500)
    (project,) = table.query(keys.organization_pk(pro), prefix=keys.PROJECT_PREFIX).items
    assert [it["kind"] for it in project["websites"]] == ["domain", "wildcard", "development"]
    assert len(project["websites"][0]["audits"]) == 1
    assert [it["outcome"] for it in table.query(keys.organization_pk(pro), prefix="AUDITRUN#").items] == ["passed"]


def test_the_inbox_has_detections_an_advisory_and_findings(api: Api, demo: dict[str, Any]):
    owner = next(it for it in demo["users"] if it["role"] == "owner")
    shown = api.get("/v1/inbox", owner["accessToken"]).data
    assert sorted(item["source"] for item in shown) == ["advisory", *["code-audit"] * 3, "runtime", "runtime"]
    assert {item["status"] for item in shown} == {"open"}


def test_the_repository_is_linked_has_a_past_scan_and_is_scanned_once_more(sqs: FakeSqs, demo: dict[str, Any]):
    (entry,) = demo["repositories"]
    repository = repositories.get_repository(entry["repositoryId"])
    assert repository.html_url == "http://127.0.0.1:3000/github-stand-in/demo-shop/storefront"
    assert [projects.get_project(link.project_id).name for link in repository.links] == ["Acme Shop"]
    (letter,) = sqs.at(Queue.SCAN_PREPARATION.url)
    assert json.loads(letter.body)["kind"] == "prepare-scan"
    (past,) = reads.list_scans(entry["organizationId"], 10, None).items
    assert (past.status, past.locked_count) == ("completed", 2)
    assert {it["queue"] for name in keys.OUTBOX_PKS for it in table.query(name).items} == {"notifications"}
    items = inbox.list_items(entry["organizationId"], None, 100, None).items
    assert sum(item.source == "code-audit" for item in items) == 3

"""The demo data of a local run."""

import json
from typing import Any

import pytest

from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import store as api_keys
from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.code_host.items import HostedRepository
from controlplane.findings import inbox
from controlplane.organizations import members
from controlplane.organizations import store as organizations
from controlplane.organizations.members import remove_member
from controlplane.people import tokens as user_tokens
from controlplane.people import users
from controlplane.platform.core.ids import KeyId
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.tokens import digest
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, table
from controlplane.projects import store as projects
from controlplane.scans import reads
from local.demo import ensure_demo
from ops.members import add_member
from tests.functional.conftest import FakeClock
from tests.support.api import Api
from tests.support.sqs import FakeSqs
from tests.support.table import PREPARED
from tests.support.world import table_dump


@pytest.fixture
def demo() -> dict[str, Any]:
    return ensure_demo()


def of_plan(demo: dict[str, Any], plan: str) -> str:
    return next(it["organizationId"] for it in demo["organizations"] if it["plan"] == plan)


def person(demo: dict[str, Any], role: str, organization_id: str) -> dict[str, Any]:
    return next(it for it in demo["users"] if (it["role"], it["organizationId"]) == (role, organization_id))


class TestFresh:
    def test_seed_prints_everything_needed_to_use_it(self, demo: dict[str, Any]):
        assert set(demo) == {"organizations", "users", "apiKeys", "repositories"}
        assert {it["plan"] for it in demo["organizations"]} == {"free", "pro"}
        pro, free = of_plan(demo, "pro"), of_plan(demo, "free")
        assert {it["role"] for it in demo["users"] if it["organizationId"] == pro} == {"owner", "admin", "member"}
        assert [it["organizationId"] for it in demo["users"] if it["organizationId"] != pro] == [free]
        assert all(set(it) == {"email", "userId", "accessToken", "role", "organizationId"} for it in demo["users"])
        assert [it["organizationId"] for it in demo["apiKeys"]] == [pro]

    def test_every_seeded_token_and_key_works(self, api: Api, demo: dict[str, Any]):
        for user in demo["users"]:
            me = api.get("/v1/me", user["accessToken"]).data
            assert me["principal"]["userId"] == user["userId"]
            assert [(it["id"], it["role"]) for it in me["organizations"]] == [(user["organizationId"], user["role"])]
            assert me["scopes"] == sorted(SCOPES)
        (key,) = demo["apiKeys"]
        principal = api.get("/v1/me", key["key"]).data["principal"]
        assert (principal["keyId"], principal["organizationId"]) == (key["keyId"], key["organizationId"])

    def test_the_seeded_pro_organization_has_credits_a_project_websites_and_an_audit(self, demo: dict[str, Any]):
        pro = of_plan(demo, "pro")
        assert billing.get_billing(pro)[1].credits > 0
        (project,) = table.query(keys.organization_pk(pro), prefix=keys.PROJECT_PREFIX).items
        assert [it["kind"] for it in project["websites"]] == ["domain", "wildcard", "development"]
        assert len(project["websites"][0]["audits"]) == 1
        assert [it["result"] for it in table.query(keys.organization_pk(pro), prefix="AUDITRUN#").items] == ["passed"]

    def test_the_seeded_inbox_contains_a_detection_and_an_advisory(self, api: Api, demo: dict[str, Any]):
        owner = person(demo, "owner", of_plan(demo, "pro"))
        shown = api.get("/v1/inbox", owner["accessToken"]).data
        assert sorted(item["source"] for item in shown) == ["advisory", "runtime", "runtime"]
        assert {item["status"] for item in shown} == {"open"}

    def test_the_seeded_repository_has_a_past_scan_and_is_scanned_once_more(self, sqs: FakeSqs):
        hosted = HostedRepository(
            installation_id=1,
            owner="acme",
            name="shop",
            html_url="https://code.example/acme/shop",
            default_branch="main",
            visibility="private",
        )
        demo = ensure_demo(None, hosted)
        assert ensure_demo(demo, hosted) == demo
        (letter,) = sqs.at(Queue.SCAN_PREPARATION.url)
        assert json.loads(letter.body)["kind"] == "prepare-scan"
        organization_id = of_plan(demo, "pro")
        (past,) = reads.list_scans(organization_id, 10, None).scans
        assert (past.status, past.locked_count) == ("completed", 2)
        assert {it["queue"] for name in keys.OUTBOX_PKS for it in table.query(name).items} == {"notifications"}
        resolved = inbox.list_items(organization_id, None, 100, None).items
        assert sum(item.source == "code-audit" for item in resolved) == 3

    def test_an_interrupted_seed_is_completed_by_running_it_again(self):
        users.create_user("owner@acme.example", "Olivia Owner")
        profile = users.find_user_by_email("owner@acme.example")
        assert profile is not None
        organizations.create_organization("Acme", "acme", profile.user_id)
        demo = ensure_demo()
        assert billing.get_billing(of_plan(demo, "pro"))[0].plan == "pro"
        assert len(demo["users"]) == 4


class TestAgain:
    def test_seeding_again_changes_nothing_and_prints_the_same(self, demo: dict[str, Any]):
        before = table_dump()
        assert ensure_demo(demo) == demo
        assert table_dump() == before

    def test_seeding_again_without_known_secrets_creates_only_new_secrets(self, api: Api, demo: dict[str, Any]):
        again = ensure_demo()
        assert again["organizations"] == demo["organizations"]
        assert [it["userId"] for it in again["users"]] == [it["userId"] for it in demo["users"]]
        (old,), (new,) = demo["apiKeys"], again["apiKeys"]
        assert api.get("/v1/me", old["key"]).status == 401
        assert api.get("/v1/me", new["key"]).status == 200
        assert len(api_keys.list_keys(new["organizationId"], 50, None).keys) == 1

    def test_expired_and_revoked_seeded_secrets_are_replaced(self, api: Api, demo: dict[str, Any], now: FakeClock):
        (key,) = demo["apiKeys"]
        key_changes.delete_key(KeyId.stored(key["keyId"]))
        table.delete(Delete(keys.user_token(digest(demo["users"][0]["accessToken"]))), PREPARED)
        again = ensure_demo(demo)
        assert again["apiKeys"][0]["key"] != key["key"]
        assert again["users"][0]["accessToken"] != demo["users"][0]["accessToken"]
        assert again["users"][1]["accessToken"] == demo["users"][1]["accessToken"]
        now.advance(3650 * 86_400)
        later = ensure_demo(again)
        assert not {it["accessToken"] for it in later["users"]} & {it["accessToken"] for it in again["users"]}
        assert api.get("/v1/me", later["users"][0]["accessToken"]).status == 200

    def test_a_seeded_token_without_all_scopes_is_replaced(self, demo: dict[str, Any]):
        user = demo["users"][0]
        weak = user_tokens.create_token(user["userId"], ["projects.read"], 10 * 86_400)
        again = ensure_demo({**demo, "users": [{**user, "accessToken": weak}]})
        assert again["users"][0]["accessToken"] not in (weak, user["accessToken"])

    def test_seeding_again_restores_changed_items(self, demo: dict[str, Any]):
        pro = of_plan(demo, "pro")
        owner, admin = person(demo, "owner", pro), person(demo, "admin", pro)
        billing.change_plan(pro, "free")
        billing.add_credits(pro, -100)
        admin_member, _ = members.find_member_and_caller(pro, admin["userId"], owner["userId"])
        assert admin_member is not None
        members.change_role(admin_member, "owner", owner["userId"], "owner")
        remove_member(pro, owner["userId"])
        assert ensure_demo(demo) == demo
        organization, account = billing.get_billing(pro)
        assert (organization.plan, organization.owners, account.credits) == ("pro", 1, 500)

    def test_seeding_again_keeps_added_items(self, demo: dict[str, Any]):
        pro = of_plan(demo, "pro")
        organization = organizations.find_organization(pro)
        assert organization is not None
        newcomer = users.create_user("new@acme.example", "Nele New")
        add_member(organization, newcomer.user_id, "admin")
        billing.add_credits(pro, 1000)
        before = table_dump()
        ensure_demo(demo)
        assert table_dump() == before


class TestRepository:
    def test_seeding_connects_and_links_the_repository_once(self):
        hosted = HostedRepository(
            installation_id=7,
            owner="demo-shop",
            name="storefront",
            html_url="http://127.0.0.1:3000/x",
            default_branch="main",
            visibility="private",
        )
        first = ensure_demo(None, hosted)
        (entry,) = first["repositories"]
        assert entry["organizationId"] == first["organizations"][0]["organizationId"]
        assert ensure_demo(first, hosted)["repositories"] == [entry]
        repository = repositories.get_repository(entry["repositoryId"])
        assert [projects.get_project(link.project_id).name for link in repository.links] == ["Acme Shop"]

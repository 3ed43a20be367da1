"""GET /v1/requests/{requestId}: what was decided about a request, from records that cost a success nothing."""

import json
from contextlib import contextmanager
from typing import Any

import pytest

from controlplane.core import clock, ids
from controlplane.core.tokens import digest
from controlplane.store import billing, keys, refusals
from controlplane.store.table import Update, table
from tests.functional.conftest import FakeClock
from tests.support.api import Api, Reply
from tests.support.calls import intercepted, is_update_of, refused
from tests.support.documented import documented_operations
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import Company, World

DAY = 86_400
SECRET = "sk_live_4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWi"


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


def id_of(reply: Reply) -> str:
    return reply.headers["x-request-id"]


def ask(api: Api, request: Reply | str, token: str, query: str = "") -> Reply:
    request_id = request if isinstance(request, str) else id_of(request)
    return api.get(f"/v1/requests/{request_id}{query}", token)


def records(owner_id: str) -> list[dict[str, Any]]:
    return [record for item in table.query(keys.refusals_pk(owner_id)).items for record in item["refusals"]]


@contextmanager
def writes_of_refusals():
    """Yields a list that gets every attempt to write a record."""
    attempts: list[Any] = []

    def around(call, proceed):
        if call.operation == "UpdateItem" and "REFUSALS#" in json.dumps(call.parameters["Key"]):
            attempts.append(call)
        return proceed()

    with intercepted(table.client, around):
        yield attempts


class TestRefused:
    def test_a_missing_scope_is_explained_with_the_scopes_in_force(self, api: Api, world: World, company: Company):
        token = world.token(company.owner.user_id, ["projects.read"])
        refused = api.get("/v1/members", token)
        assert ask(api, refused, token).data == {
            "requestId": id_of(refused),
            "beganAt": "2026-03-04T05:06:07.000Z",
            "decision": "refused",
            "refusal": {
                "status": 403,
                "code": "INSUFFICIENT_SCOPE",
                "rule": "insufficient_scope",
                "operation": "GET /v1/members",
                "docsUrl": "https://api.assent.test/docs/errors#INSUFFICIENT_SCOPE",
                "keyId": None,
                "problems": [],
                "details": {"requiredScope": "members.read"},
                "limits": {
                    "requestsPerMinute": 600,
                    "requests": 1,
                    "plan": None,
                    "role": None,
                    "scopes": ["projects.read"],
                },
            },
            "changes": [],
        }

    def test_a_limit_of_the_plan_is_explained_as_it_was_at_that_time(self, api: Api, world: World, company: Company):
        key = world.key(company)
        billing.change_plan(company.organization_id, "starter")
        table.update(
            Update(keys.organization(company.organization_id), "SET #projects = :many", None, {"many": 50}), PREPARED
        )
        refused = api.post("/v1/projects", key, json_body={"name": "Shop", "region": "eu-west"})
        assert refused.code == "PLAN_LIMIT_REACHED"
        billing.change_plan(company.organization_id, "enterprise")
        explained = ask(api, refused, company.owner.token).data["refusal"]
        assert explained["rule"] == "project_limit_reached"
        assert explained["details"] == {"limit": refused.error["details"]["limit"], "current": 50, "plan": "starter"}
        assert explained["limits"]["plan"] == "starter"
        assert explained["limits"]["role"] == "admin"
        assert explained["keyId"].startswith("key_")

    def test_problems_are_explained_by_code_and_declared_field(self, api: Api, company: Company):
        token = company.owner.token
        refused = api.post("/v1/api-keys", token, json_body={"name": 17, SECRET: SECRET})
        explained = ask(api, refused, token).data["refusal"]
        assert explained["problems"] == [
            {"code": "string_type", "field": "name"},
            {"code": "extra_forbidden", "field": None},
        ]
        refused = api.post("/v1/api-keys", token, json_body={f"f{number}": 1 for number in range(20)})
        assert len(ask(api, refused, token).data["refusal"]["problems"]) == 10

    def test_a_detail_that_was_sent_is_not_recorded(self, api: Api, company: Company):
        token = company.owner.token
        refused = api.post("/v1/organizations", token, json_body={"name": "Acme", "slug": company.slug})
        assert refused.error["details"]["slug"] == company.slug
        assert ask(api, refused, token).data["refusal"]["details"] == {"field": "slug"}

    def test_a_rate_limit_is_explained_once_the_minute_is_over(
        self, api: Api, world: World, company: Company, now: FakeClock
    ):
        key = world.key(company)
        limit = Update(keys.key_secret(digest(key)), "SET #rateLimit = :one", None, {"one": 1})
        table.update(limit, PREPARED)
        api.get("/v1/me", key)
        refused = api.get("/v1/me", key)
        assert refused.status == 429
        now.advance(60)
        assert ask(api, refused, key).data["refusal"]["limits"] == {
            "requestsPerMinute": 1,
            "requests": 2,
            "plan": "pro",
            "role": None,
            "scopes": None,
        }

    def test_only_the_caller_and_readers_of_the_audit_log_can_ask(self, api: Api, world: World, company: Company):
        key, member, admin = world.key(company), world.member(company), world.member(company, "admin")
        by_key = api.get("/v1/projects/prj_unknown", key)
        by_member = api.post("/v1/api-keys", member.token, json_body={"name": "deploy"})
        unknown = "1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11-" + ids.local_at(clock.now())
        other_token = world.token(member.user_id, ["projects.read"])
        for reply, token in (
            (by_key, key),
            (by_key, admin.token),
            (by_key, company.owner.token),
            (by_member, member.token),
            (by_member, other_token),
            (by_member, admin.token),
        ):
            assert ask(api, reply, token).data["refusal"]["code"] == reply.code
        without_scope = world.token(admin.user_id, ["organizations.read", "members.read", "billing.read"])
        for reply, token in (
            (by_key, world.key(company)),
            (by_key, member.token),
            (by_key, without_scope),
            (by_member, key),
            (by_member, world.member(company).token),
            (by_member, without_scope),
        ):
            assert ask(api, reply, token).text == ask(api, unknown, token).text

    def test_of_a_request_that_changed_something_and_was_refused_others_changes_are_hidden(
        self, api: Api, world: World, company: Company
    ):
        created = api.post("/v1/projects", company.owner.token, json_body={"name": "Shop", "region": "eu-west"})
        member = world.member(company)
        limits = {"requestsPerMinute": 600, "requests": 1}
        facts = {"status": 409, "code": "CONFLICT", "rule": "x", "operation": "POST /v1/projects", "limits": limits}
        refusals.record(company.organization_id, member.user_id, id_of(created), facts)
        for person, changes in ((company.owner, 1), (member, 0)):
            explained = ask(api, created, person.token).data
            assert (explained["decision"], len(explained["changes"])) == ("refused", changes)

    def test_only_the_person_can_ask_before_the_organization_is_known(self, api: Api, world: World, company: Company):
        refused = api.get("/v1/members?limit=x", company.owner.token)
        assert ask(api, refused, company.owner.token).data["refusal"]["code"] == "INVALID_PAYLOAD"
        for token in (world.key(company), world.member(company, "owner").token):
            assert ask(api, refused, token).status == 404


class TestChanged:
    def test_a_change_is_explained_by_its_entries(self, api: Api, company: Company, now: FakeClock):
        token = company.owner.token
        created = api.post("/v1/projects", token, json_body={"name": "Shop", "region": "eu-west"})
        now.advance(1)
        api.post("/v1/projects", token, json_body={"name": "Other", "region": "eu-west"})
        explained = ask(api, created, token).data
        assert (explained["decision"], explained["refusal"]) == ("changed", None)
        assert explained["beganAt"] == "2026-03-04T05:06:07.000Z"
        (change,) = explained["changes"]
        assert change["action"] == "project.create"
        assert change["resourceId"] == created.data["id"]
        (entry,) = [it for it in api.get("/v1/audit-log", token).data if it["id"] == change["id"]]
        assert entry["requestId"] == id_of(created)

    def test_every_entry_of_the_request_is_shown(self, api: Api, world: World, company: Company):
        items = [world.finding(company) for _ in range(2)]
        changes = [{"id": it.item_id, "status": "accepted", "version": it.version} for it in items]
        changed = api.patch("/v1/inbox", company.owner.token, json_body={"items": changes})
        shown = ask(api, changed, company.owner.token).data["changes"]
        assert {it["resourceId"] for it in shown} == {str(it.item_id) for it in items}

    def test_a_change_at_the_end_of_a_month_is_found(self, api: Api, company: Company, world: World, now: FakeClock):
        now.seconds = 1_775_001_599.5  # 2026-03-31T23:59:59.5Z
        token = world.token(company.owner.user_id)
        created = api.post("/v1/projects", token, json_body={"name": "Shop", "region": "eu-west"})
        now.advance(10)
        assert len(ask(api, created, token).data["changes"]) == 1

    def test_members_see_only_their_own_changes(self, api: Api, world: World, company: Company):
        key, member = world.key(company), world.member(company)
        body = {"name": "Shop", "region": "eu-west"}
        by_owner, by_key, by_member = (
            api.post("/v1/projects", token, json_body=body) for token in (company.owner.token, key, member.token)
        )
        admin = world.member(company, "admin")
        without_scope = world.token(admin.user_id, ["projects.read"])
        for request, token, status in (
            (by_owner, admin.token, 200),
            (by_key, admin.token, 200),
            (by_key, key, 200),
            (by_member, member.token, 200),
            (by_owner, member.token, 404),
            (by_owner, key, 404),
            (by_key, world.key(company), 404),
            (by_owner, without_scope, 404),
        ):
            assert ask(api, request, token).status == status


class Test404:
    def test_other_organizations_and_unknown_requests_look_alike(self, api: Api, world: World, company: Company):
        stranger = world.company()
        key = world.key(company)
        refused = api.get("/v1/projects/prj_unknown", key)
        created = api.post("/v1/projects", key, json_body={"name": "Shop", "region": "eu-west"})
        read = api.get("/v1/projects", key)
        unknown = "1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11-" + ids.local_at(clock.now())
        texts = {
            ask(api, request, token).text
            for request in (refused, created, read, unknown, "x", "1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11")
            for token in (stranger.owner.token, world.key(stranger))
        }
        assert len(texts) == 1
        assert ask(api, read, key).code == "NOT_FOUND"
        assert ask(api, refused, stranger.owner.token, f"?organizationId={company.organization_id}").status == 403

    def test_a_former_member_can_not_ask(self, api: Api, world: World, company: Company):
        member = world.member(company)
        refused = api.get("/v1/projects/prj_unknown", world.key(company))
        world.leave(company, member)
        assert ask(api, refused, member.token).status == 403

    def test_a_record_ends_after_a_day_even_if_it_was_not_deleted(
        self, api: Api, world: World, company: Company, now: FakeClock
    ):
        key = world.key(company)
        refused = api.get("/v1/projects/prj_unknown", key)
        created = api.post("/v1/projects", key, json_body={"name": "Shop", "region": "eu-west"})
        now.advance(DAY)
        assert ask(api, refused, key).status == ask(api, created, key).status == 200
        now.advance(1)
        assert ask(api, refused, key).status == ask(api, created, key).status == 404
        (item,) = table.query(keys.refusals_pk(company.organization_id)).items[:1]
        assert 0 < item["expiresAt"] - (now() - 1) <= 60


class TestWrites:
    def test_a_success_writes_nothing_more(self, api: Api, world: World, company: Company):
        key = world.key(company)
        with writes_of_refusals() as attempts:
            assert api.get("/v1/projects", key).status == 200
            assert api.post("/v1/projects", key, json_body={"name": "Shop", "region": "eu-west"}).status == 201
        assert attempts == []

    def test_unknown_credentials_and_public_routes_write_nothing(self, api: Api, company: Company):
        with writes_of_refusals() as attempts:
            assert api.get("/v1/projects").status == 401
            assert api.get("/v1/projects", "assent_short").status == 401
            assert api.post("/v1/auth/device/code", json_body={}).status == 400
        assert attempts == []

    def test_a_flood_writes_no_more_than_the_bound(self, api: Api, world: World, company: Company, now: FakeClock):
        key = world.key(company)
        with writes_of_refusals() as attempts:
            for _ in range(40):
                assert api.get("/v1/projects/prj_unknown", key).status == 404
        assert len(attempts) == len(records(company.organization_id)) == refusals.RECORDS_PER_ITEM
        refusals.forget_full()
        with writes_of_refusals() as attempts:
            for _ in range(40):
                api.get("/v1/projects/prj_unknown", key)
        # Another environment tries once.
        assert len(attempts) == 1
        assert len(records(company.organization_id)) == refusals.RECORDS_PER_ITEM
        now.advance(60)
        refused = api.get("/v1/projects/prj_unknown", key)
        assert ask(api, refused, key).status == 200

    def test_an_organization_has_a_bound_for_all_of_its_callers(self, api: Api, world: World, company: Company):
        for key in [world.key(company) for _ in range(24)]:
            for _ in range(12):
                api.get("/v1/projects/prj_unknown", key)
        kept = records(company.organization_id)
        assert len(kept) <= refusals.ITEMS_PER_MINUTE * refusals.RECORDS_PER_ITEM
        assert len({record["keyId"] for record in kept}) > 1

    @each("code", ["ProvisionedThroughputExceededException", "InternalServerError"])
    def test_a_record_that_can_not_be_written_is_missing(self, code: str, api: Api, world: World, company: Company):
        key = world.key(company)
        with refused(table.client, is_update_of("REFUSALS#"), code):
            unrecorded = api.get("/v1/projects/prj_unknown", key)
        assert unrecorded.code == "NOT_FOUND"
        assert ask(api, unrecorded, company.owner.token).status == 404
        assert ask(api, api.get("/v1/projects/prj_unknown", key), company.owner.token).status == 200


def test_a_record_has_no_text_that_was_sent_and_no_person(api: Api, world: World, company: Company):
    owner = company.owner
    for operation in documented_operations():
        body = {SECRET: SECRET, "name": SECRET, "email": SECRET, "scope": SECRET}
        api.call(
            operation.method.upper(),
            f"{operation.path}?{SECRET}={SECRET}&organizationId={SECRET}",
            owner.token,
            json_body=body,
        )
    text = json.dumps([records(owner.user_id), records(company.organization_id)], default=str)
    assert '"code"' in text
    for private in (SECRET, owner.token, owner.email, owner.name, owner.user_id):
        assert private not in text


def test_asking_reads_three_partitions_in_one_round_trip(api: Api, world: World, company: Company):
    refused = api.get("/v1/members?limit=x", company.owner.token)
    with recorded_calls() as calls:
        assert ask(api, refused, company.owner.token).status == 200
    queries = [call.parameters for call in calls if call.operation == "Query"]
    assert len(queries) <= 4
    # A change is explained as soon as it was answered.
    assert [it["ConsistentRead"] for it in queries if keys.LOG_PREFIX in str(it)] == [True]

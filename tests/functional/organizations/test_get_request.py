"""GET /v1/requests/{requestId}: what was decided about a request, from records that cost a success nothing."""

import json
from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.platform.core import clock, ids
from controlplane.platform.core.errors import Conflict
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys, refusals
from controlplane.platform.table.refusals import Refusal
from controlplane.platform.table.table import Update, table
from tests.support.api import Api, Reply
from tests.support.calls import Call, is_update_of, recorded_calls, refused
from tests.support.documented import documented_operations
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import World

DAY = 86_400
SECRET = "sk_live_4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWi"
WITHOUT_LOG = ["organizations.read", "members.read", "billing.read", "projects.read"]


class Organization:
    """An organization with a key, whose requests are refused or change something."""

    def __init__(self, api: Api, world: World) -> None:
        self.api, self.world, self.company = api, world, world.company()
        self.id, self.owner, self.key = self.company.organization_id, self.company.owner.token, world.key(self.company)

    def member(self, role: Any = "member") -> str:
        return self.world.member(self.company, role).token

    def admin_without_log(self) -> str:
        return self.world.token(self.world.member(self.company, "admin").user_id, WITHOUT_LOG)

    def refuse(self, token: str | None = None) -> Reply:
        """Sends a request, by default with the key, that is refused with 404."""
        return self.api.get("/v1/projects/prj_unknown", token or self.key)

    def change(self, token: str | None = None) -> Reply:
        """Creates a project, by default with the key."""
        return self.api.post("/v1/projects", token or self.key, json_body={"name": "Shop", "region": "eu-west"})

    def ask(self, request: Reply | str, token: str | None = None, query: str = "") -> Reply:
        """Asks about the request, by default as the owner."""
        return self.api.get(f"/v1/requests/{id_of(request)}{query}", token or self.owner)

    def refusal(self, request: Reply, token: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(request, token).data["refusal"]
        return found


def id_of(request: Reply | str) -> str:
    return request if isinstance(request, str) else request.headers["x-request-id"]


def unknown_id() -> str:
    return "1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11-" + ids.local_at(clock.now())


def records(owner_id: str) -> list[dict[str, Any]]:
    return [record for item in table.query(keys.refusals_pk(owner_id)).items for record in item["refusals"]]


def attempts(calls: list[Call]) -> int:
    """Returns how many of the calls write a record."""
    return sum(map(is_update_of("REFUSALS#"), calls))


@pytest.fixture
def acme(api, world):
    return Organization(api, world)


class TestRefused:
    def test_a_missing_scope_is_explained_with_the_scopes_in_force(self, acme, api, world):
        token = world.token(acme.company.owner.user_id, ["projects.read"])
        refused = api.get("/v1/members", token)
        assert acme.ask(refused, token).data == {
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

    def test_a_limit_of_the_plan_is_explained_as_it_was_at_that_time(self, acme):
        billing.change_plan(acme.id, "starter")
        table.update(Update(keys.organization(acme.id), "SET #projects = :many", None, {"many": 50}), PREPARED)
        refused = acme.change()
        assert refused.code == "PLAN_LIMIT_REACHED"
        billing.change_plan(acme.id, "enterprise")
        explained = acme.refusal(refused)
        assert explained["rule"] == "project_limit_reached"
        assert explained["details"] == {"limit": refused.error["details"]["limit"], "current": 50, "plan": "starter"}
        assert (explained["limits"]["plan"], explained["limits"]["role"]) == ("starter", "admin")
        assert explained["keyId"].startswith("key_")

    def test_problems_are_explained_by_code_and_declared_field_without_what_was_sent(self, acme, api):
        refused = api.post("/v1/api-keys", acme.owner, json_body={"name": 17, SECRET: SECRET})
        assert acme.refusal(refused)["problems"] == [
            {"code": "string_type", "field": "name"},
            {"code": "extra_forbidden", "field": None},
        ]
        refused = api.post("/v1/api-keys", acme.owner, json_body={f"f{number}": 1 for number in range(20)})
        assert len(acme.refusal(refused)["problems"]) == 10
        refused = api.post("/v1/organizations", acme.owner, json_body={"name": "Acme", "slug": acme.company.slug})
        assert refused.error["details"]["slug"] == acme.company.slug
        assert acme.refusal(refused)["details"] == {"field": "slug"}

    def test_a_rate_limit_is_explained_once_the_minute_is_over(self, acme, now):
        limit = Update(keys.key_secret(digest(acme.key)), "SET #rateLimit = :one", None, {"one": 1})
        table.update(limit, PREPARED)
        acme.refuse()
        refused = acme.refuse()
        assert refused.status == 429
        now.advance(60)
        assert acme.refusal(refused, acme.key)["limits"] == {
            "requestsPerMinute": 1,
            "requests": 2,
            "plan": "pro",
            "role": None,
            "scopes": None,
        }

    def test_only_the_caller_and_readers_of_the_audit_log_can_ask(self, acme, api, world):
        member = world.member(acme.company)
        by_key, by_member = acme.refuse(), api.post("/v1/api-keys", member.token, json_body={"name": "deploy"})
        admin, admin_without_log = acme.member("admin"), acme.admin_without_log()
        other_token = world.token(member.user_id, ["projects.read"])
        for request, tokens in (
            (by_key, [acme.key, admin, acme.owner]),
            (by_member, [member.token, other_token, admin]),
        ):
            assert {acme.refusal(request, token)["code"] for token in tokens} == {request.code}
        for request, tokens in (
            (by_key, [world.key(acme.company), member.token, admin_without_log]),
            (by_member, [acme.key, acme.member(), admin_without_log]),
        ):
            for token in tokens:
                assert acme.ask(request, token).text == acme.ask(unknown_id(), token).text

    def test_of_a_request_that_changed_something_and_was_refused_others_changes_are_hidden(self, acme, world):
        created, member = acme.change(acme.owner), world.member(acme.company)
        limits = {"requestsPerMinute": 600, "requests": 1}
        refused = Refusal(Conflict(), "POST /v1/projects", id_of(created), ())
        refusals.record(refused, acme.id, member.user_id, None, limits)
        for token, changes in ((acme.owner, 1), (member.token, 0)):
            explained = acme.ask(created, token).data
            assert (explained["decision"], len(explained["changes"])) == ("refused", changes)

    def test_only_the_person_can_ask_before_the_organization_is_known(self, acme, api):
        refused = api.get("/v1/members?limit=x", acme.owner)
        assert acme.refusal(refused)["code"] == "INVALID_PAYLOAD"
        assert {acme.ask(refused, token).status for token in (acme.key, acme.member("owner"))} == {404}


class TestChanged:
    def test_a_change_is_explained_by_its_entries(self, acme, api, now):
        created = acme.change(acme.owner)
        now.advance(1)
        acme.change(acme.owner)
        explained = acme.ask(created).data
        assert (explained["decision"], explained["refusal"]) == ("changed", None)
        assert explained["beganAt"] == "2026-03-04T05:06:07.000Z"
        (change,) = explained["changes"]
        assert (change["action"], change["resourceId"]) == ("project.create", created.data["id"])
        (entry,) = [it for it in api.get("/v1/audit-log", acme.owner).data if it["id"] == change["id"]]
        assert entry["requestId"] == id_of(created)

    def test_every_entry_of_the_request_is_shown_also_at_the_end_of_a_month(self, acme, api, world, now):
        items = [world.finding(acme.company) for _ in range(2)]
        changes = [{"id": it.item_id, "status": "accepted", "version": it.version} for it in items]
        changed = api.patch("/v1/inbox", acme.owner, json_body={"items": changes})
        assert {it["resourceId"] for it in acme.ask(changed).data["changes"]} == {str(it.item_id) for it in items}
        now.seconds = 1_775_001_599.5  # 2026-03-31T23:59:59.5Z
        created = acme.change()
        now.advance(10)
        assert len(acme.ask(created, acme.key).data["changes"]) == 1

    def test_members_see_only_their_own_changes(self, acme, world):
        admin, member = acme.member("admin"), acme.member()
        by_owner, by_key, by_member = (acme.change(token) for token in (acme.owner, acme.key, member))
        for request, token, status in (
            (by_owner, admin, 200),
            (by_key, admin, 200),
            (by_key, acme.key, 200),
            (by_member, member, 200),
            (by_owner, member, 404),
            (by_owner, acme.key, 404),
            (by_key, world.key(acme.company), 404),
            (by_owner, acme.admin_without_log(), 404),
        ):
            assert acme.ask(request, token).status == status


class Test404:
    def test_other_organizations_and_unknown_requests_look_alike(self, acme, api, world):
        other, member = Organization(api, world), world.member(acme.company)
        refused, created, read = acme.refuse(), acme.change(), api.get("/v1/projects", acme.key)
        texts = {
            other.ask(request, token).text
            for request in (refused, created, read, unknown_id(), "x", "1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11")
            for token in (other.owner, other.key)
        }
        assert len(texts) == 1
        assert acme.ask(read, acme.key).code == "NOT_FOUND"
        world.leave(acme.company, member)
        assert other.ask(refused, query=f"?organizationId={acme.id}").status == 403
        assert acme.ask(refused, member.token).status == 403

    def test_a_record_ends_after_a_day_even_if_it_was_not_deleted(self, acme, now):
        requests = (acme.refuse(), acme.change())
        now.advance(DAY)
        assert [acme.ask(request, acme.key).status for request in requests] == [200, 200]
        now.advance(1)
        assert [acme.ask(request, acme.key).status for request in requests] == [404, 404]
        (item,) = table.query(keys.refusals_pk(acme.id)).items[:1]
        assert 0 < item["expiresAt"] - (now() - 1) <= 60


class TestWrites:
    def test_a_success_unknown_credentials_and_public_routes_write_nothing_more(self, acme, api):
        with recorded_calls() as calls:
            assert [api.get("/v1/projects", acme.key).status, acme.change().status] == [200, 201]
            assert [api.get("/v1/projects", token).status for token in (None, "assent_short")] == [401, 401]
            assert api.post("/v1/auth/device/code", json_body={}).status == 400
        assert attempts(calls) == 0

    def test_a_flood_writes_no_more_than_the_bound(self, acme, now):
        # Another environment tries once.
        for environment, most in (("first", refusals.RECORDS_PER_ITEM), ("second", 1)):
            refusals._full.clear()
            with recorded_calls() as calls:
                for _ in range(40):
                    acme.refuse()
            assert (attempts(calls), len(records(acme.id))) == (most, refusals.RECORDS_PER_ITEM), environment
        now.advance(60)
        assert acme.ask(acme.refuse(), acme.key).status == 200

    def test_an_organization_has_a_bound_for_all_of_its_callers(self, acme):
        for caller in range(24):
            for _ in range(12):
                refused = Refusal(Conflict(), "POST /v1/projects", unknown_id(), ())
                refusals.record(refused, acme.id, "usr_any", f"key_{caller}", {})
        kept = records(acme.id)
        assert len(kept) <= refusals.ITEMS_PER_MINUTE * refusals.RECORDS_PER_ITEM
        assert len({record["keyId"] for record in kept}) > 1

    @each("code", ["ProvisionedThroughputExceededException", "InternalServerError"])
    def test_a_record_that_can_not_be_written_is_missing(self, code, acme):
        with refused(table.client, is_update_of("REFUSALS#"), code):
            unrecorded = acme.refuse()
        assert unrecorded.code == "NOT_FOUND"
        assert [acme.ask(request).status for request in (unrecorded, acme.refuse())] == [404, 200]


def test_a_record_has_no_text_that_was_sent_and_no_person(acme, api):
    owner = acme.company.owner
    for operation in documented_operations():
        method, path = operation.method.upper(), operation.path
        body = {SECRET: SECRET, "name": SECRET, "email": SECRET, "scope": SECRET}
        api.call(method, f"{path}?{SECRET}={SECRET}&organizationId={SECRET}", owner.token, json_body=body)
    text = json.dumps([records(owner.user_id), records(acme.id)], default=str)
    assert '"code"' in text
    for private in (SECRET, owner.token, owner.email, owner.name, owner.user_id):
        assert private not in text

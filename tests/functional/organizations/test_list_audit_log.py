"""GET /v1/audit-log: what changed in an organization, newest first."""

import os
from typing import Any

import pytest

from controlplane.core import clock
from controlplane.core.ids import ProjectId
from controlplane.core.settings import settings
from controlplane.store import billing, keys, projects
from controlplane.store.table import Put, table
from tests.functional.conftest import FakeClock
from tests.support.api import Api, Reply
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import Company, World

DAY = 86_400


@pytest.fixture
def company(world: World) -> Company:
    """Returns an organization whose owner's token lives for years."""
    made = world.company()
    FakeClock.advance(clock.source, 1)  # type: ignore[arg-type]
    made.owner.token = world.token(made.owner.user_id, lifetime_seconds=1_000 * DAY)
    return made


def listed(api: Api, company: Company, query: str = "", token: str | None = None) -> Reply:
    return api.get(f"/v1/audit-log{query}", token or company.owner.token)


def everything(api: Api, company: Company, query: str) -> list[dict[str, Any]]:
    """Returns the entries of all pages."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        reply = listed(api, company, f"?{query}{cursor}")
        assert reply.status == 200, reply.text
        found += reply.data
        assert len(found) < 100
        if not reply.body["pagination"]["hasMore"]:
            return found
        cursor = f"&cursor={reply.body['pagination']['nextCursor']}"


def change(api: Api, company: Company, number: int) -> str:
    body = {"name": f"Shop {number}", "region": "eu-central"}
    made: str = api.post("/v1/projects", company.owner.token, json_body=body).data["id"]
    # Entries of the same millisecond have no order.
    FakeClock.advance(clock.source, 1)  # type: ignore[arg-type]
    return made


class Test200:
    def test_shows_who_changed_what_and_from_where(self, api: Api, company: Company):
        created = change(api, company, 1)
        path = f"/v1/projects/{created}"
        reply = api.patch(path, company.owner.token, json_body={"projectName": "Market"})
        entry = listed(api, company).data[0]
        changes = entry.pop("changes")
        entry.pop("id")
        assert entry == {
            "createdAt": "2026-03-04T05:06:09.000Z",
            "action": "project.update",
            "actor": {"type": "person", "id": company.owner.user_id},
            "source": "api",
            "resource": {"id": created, "name": "Market"},
            "requestId": reply.headers["x-request-id"],
        }
        assert {"field": "name", "before": "Shop 1", "after": "Market"} in changes
        assert {it["field"] for it in changes} == {"name", "slug"}

    def test_pages_span_months_and_return_each_entry_once(self, api: Api, company: Company, now: FakeClock):
        for number in range(7):
            change(api, company, number)
            now.advance(45 * DAY)
        names = [entry["resource"]["name"] for entry in everything(api, company, "limit=3")]
        assert names == [*(f"Shop {number}" for number in range(6, -1, -1)), "Acme", "Acme"]
        months = {item["pk"]["S"] for item in table.client.scan(TableName=table.name)["Items"]}
        assert len([pk for pk in months if pk.startswith(keys.LOG_PREFIX)]) == 7

    def test_filters_by_actor_action_resource_and_time(self, api: Api, world: World, company: Company, now: FakeClock):
        first = change(api, company, 1)
        admin = world.member(company, "admin")
        admin.token = world.token(admin.user_id, lifetime_seconds=9 * DAY)
        now.advance(DAY - 1)
        path = f"/v1/projects/{first}?organizationId={company.organization_id}"
        api.patch(path, admin.token, json_body={"description": "Ours"})
        now.advance(40 * DAY)
        change(api, company, 2)
        for query, expected in {
            f"actorId={admin.user_id}": ["project.update"],
            "action=project.create": ["project.create", "project.create"],
            f"resourceId={first}": ["project.update", "project.create"],
            f"resourceId={first}&until=2026-03-31T00:00:00Z": ["project.update", "project.create"],
            "since=2026-03-05T00:00:00Z": ["project.create", "project.update"],
            "until=2026-03-05T05:06:08Z&since=2026-03-05T05:06:08Z": ["project.update"],
            "until=2026-03-05T05:06:07Z&since=2026-03-05T00:00:00Z": [],
            "since=2026-03-05T00:00:00Z&until=2026-03-31T00:00:00%2B02:00": ["project.update"],
            "since=2026-08-01T00:00:00Z": [],
            "until=2025-01-01T00:00:00Z": [],
            "actorId=usr_none": [],
        }.items():
            assert [it["action"] for it in everything(api, company, query)] == expected, query
            assert [it["action"] for it in everything(api, company, query + "&limit=1")] == expected, query

    def test_a_filtered_page_has_entries_that_follow_many_others(self, api: Api, company: Company, now: FakeClock):
        created = change(api, company, 1)
        for text in ("Ours", "Theirs"):
            api.patch(f"/v1/projects/{created}", company.owner.token, json_body={"description": text})
            now.advance(1)
        page = listed(api, company, "?action=project.create&limit=1").data
        assert [entry["resource"]["id"] for entry in page] == [created]

    def test_entries_are_listed_forever_if_the_days_are_0(
        self, api: Api, company: Company, now: FakeClock, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setitem(settings.__dict__, "audit_log_retention_days", 0)
        change(api, company, 1)
        now.advance(500 * DAY)
        assert everything(api, company, "action=project.create")[0]["resource"]["name"] == "Shop 1"

    def test_a_time_in_the_future_has_no_empty_pages_before_it(self, api: Api, company: Company):
        assert listed(api, company, "?until=2030-01-01T00:00:00Z").data == listed(api, company).data != []

    def test_costs_one_round_trip_more_than_the_access(self, api: Api, company: Company):
        listed(api, company)
        named = f"?organizationId={company.organization_id}"
        with recorded_calls() as calls:
            listed(api, company, named)
        assert sorted(call.operation for call in calls) == ["GetItem", *["Query"] * 3, "UpdateItem"]
        # Half the price.
        assert not any(call.parameters["ConsistentRead"] for call in calls if call.operation == "Query")

    def test_expired_entries_of_which_ttl_has_not_deleted_any_are_omitted(
        self, api: Api, company: Company, now: FakeClock
    ):
        change(api, company, 1)
        now.advance(401 * DAY)
        assert listed(api, company).data == []

    def test_an_entry_of_a_later_release_is_listed(self, api: Api, company: Company):
        change(api, company, 1)
        item = table.query(keys.log_pk(company.organization_id, "2026-03"), newest_first=True, limit=1).items[0]
        table.put(Put({**item, "sk": "z", "action": "webhook.create", "more": True}), PREPARED)
        assert listed(api, company).data[0]["action"] == "webhook.create"


class Test400:
    @each(
        "query",
        [
            *("?action=project.paint", "?since=yesterday", "?since=2026-03-04", "?until=2026-03-04T05:06:07"),
            *("?until=9999-01-01T00:00:00Z", "?since=", "?actorId=", "?actor=usr_x", "?limit=0", "?cursor=x"),
        ],
    )
    def test_an_unknown_filter_or_value_returns_400(self, query: str, api: Api, company: Company):
        assert listed(api, company, query).code == "INVALID_PAYLOAD"

    def test_a_cursor_belongs_to_its_filters(self, api: Api, company: Company):
        for number in range(2):
            change(api, company, number)
        for query in ("?limit=1", "?limit=1&action=project.create"):
            cursor = listed(api, company, query).body["pagination"]["nextCursor"]
            assert cursor is not None
            assert listed(api, company, f"?limit=1&action=project.update&cursor={cursor}").code == "INVALID_PAYLOAD"

    def test_a_cursor_belongs_to_its_organization(self, api: Api, world: World, company: Company):
        cursor = listed(api, company, "?limit=1").body["pagination"]["nextCursor"]
        stranger = world.company().owner
        assert listed(api, company, f"?limit=1&cursor={cursor}", stranger.token).code == "INVALID_PAYLOAD"


class Test403:
    def test_members_and_api_keys_cant_read_it(self, api: Api, world: World, company: Company):
        assert listed(api, company, token=world.member(company).token).code == "FORBIDDEN"
        assert listed(api, company, token=world.key(company)).error["details"] == {"requiredScope": "audit-log.read"}

    def test_no_organization_sees_another_ones(self, api: Api, world: World, company: Company):
        stranger = world.company().owner
        assert listed(api, company, f"?organizationId={company.organization_id}", stranger.token).status == 403
        project_id = change(api, company, 1)
        assert listed(api, company, f"?resourceId={project_id}", stranger.token).data == []


class TestOtherSources:
    def test_changes_by_the_service_and_without_a_request_are_listed(self, api: Api, company: Company):
        change(api, company, 1)
        billing.add_credits(company.organization_id, 5)
        entry = listed(api, company).data[0]
        assert (entry["actor"], entry["source"], entry["requestId"]) == (
            {"type": "service", "id": os.environ["POWERTOOLS_SERVICE_NAME"]},
            "worker",
            None,
        )
        assert entry["changes"] == [{"field": "added", "before": None, "after": 5}]

    def test_long_values_are_cut(self, api: Api, company: Company, now: FakeClock):
        project_id = change(api, company, 1)
        path = f"/v1/projects/{project_id}"
        addresses = [f"shop{number}.example.com" for number in range(25)]
        api.patch(path, company.owner.token, json_body={"description": "x" * 300, "websites": addresses})
        assert listed(api, company).data[0]["action"] == "project.update"
        changes = {it["field"]: it["after"] for it in listed(api, company).data[0]["changes"]}
        assert changes["description"] == "x" * 200 + "…"
        assert (len(changes["websites"]), changes["websites"][-1]) == (21, "…")
        assert len(projects.get_project(ProjectId.stored(project_id)).websites) == 25
        now.advance(1)
        api.patch(path, company.owner.token, json_body={"description": "y" * 200, "websites": addresses[:20]})
        longest = {it["field"]: it["after"] for it in listed(api, company).data[0]["changes"]}
        assert (longest["description"], longest["websites"]) == ("y" * 200, addresses[:20])

"""GET /v1/audit-log: what changed in an organization, newest first."""

import os
from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from controlplane.projects import store as projects
from tests.functional.conftest import FakeClock
from tests.support.api import Api, Reply
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import World

DAY = 86_400


class Log:
    """The audit log of an organization, read by its owner, whose token lives for years."""

    def __init__(self, api: Api, world: World, now: FakeClock) -> None:
        self.api, self.now, self.company = api, now, world.company()
        now.advance(1)
        self.owner_id = self.company.owner.user_id
        self.token = world.token(self.owner_id, lifetime_seconds=1_000 * DAY)

    def read(self, query: str = "", token: str | None = None) -> Reply:
        return self.api.get(f"/v1/audit-log?{query}", token or self.token)

    def everything(self, query: str) -> list[dict[str, Any]]:
        """Returns the entries of all pages."""
        return [entry for page in self.api.pages(f"/v1/audit-log?{query}", self.token) for entry in page.data]

    def create(self, number: int) -> str:
        """Creates a project and returns its ID. Entries of the same millisecond have no order."""
        body = {"name": f"Shop {number}", "region": "eu-central"}
        made: str = self.api.post("/v1/projects", self.token, json_body=body).data["id"]
        self.now.advance(1)
        return made

    def update(self, project_id: str, token: str | None = None, **body: Any) -> Reply:
        path = f"/v1/projects/{project_id}?organizationId={self.company.organization_id}"
        reply = self.api.patch(path, token or self.token, json_body=body)
        self.now.advance(1)
        return reply


@pytest.fixture
def log(api, world, now):
    return Log(api, world, now)


def test_an_entry_shows_who_changed_what_and_from_where(log):
    created = log.create(1)
    reply = log.update(created, projectName="Market")
    entry = log.read().data[0]
    changes = entry.pop("changes")
    entry.pop("id")
    assert entry == {
        "createdAt": "2026-03-04T05:06:09.000Z",
        "action": "project.update",
        "actor": {"type": "person", "id": log.owner_id},
        "source": "api",
        "resource": {"id": created, "name": "Market"},
        "requestId": reply.headers["x-request-id"],
    }
    assert {"field": "name", "before": "Shop 1", "after": "Market"} in changes
    assert {it["field"] for it in changes} == {"name", "slug"}


def test_changes_by_the_service_without_a_request_and_of_a_later_release_are_listed(log):
    billing.add_credits(log.company.organization_id, 5)
    entry = log.read().data[0]
    assert entry["actor"] == {"type": "service", "id": os.environ["POWERTOOLS_SERVICE_NAME"]}
    assert (entry["source"], entry["requestId"]) == ("worker", None)
    assert entry["changes"] == [{"field": "added", "before": None, "after": 5}]
    assert log.read("until=2030-01-01T00:00:00Z").data == log.read().data
    item = table.query(keys.log_pk(log.company.organization_id, "2026-03"), newest_first=True, limit=1).items[0]
    table.put(Put({**item, "sk": "z", "action": "webhook.create", "more": True}), PREPARED)
    assert log.read().data[0]["action"] == "webhook.create"


def test_long_values_are_cut(log):
    project_id = log.create(1)
    addresses = [f"shop{number}.example.com" for number in range(25)]
    log.update(project_id, description="x" * 300, websites=addresses)
    changes = {it["field"]: it["after"] for it in log.read().data[0]["changes"]}
    assert changes["description"] == "x" * 200 + "…"
    assert (len(changes["websites"]), changes["websites"][-1]) == (21, "…")
    assert len(projects.get_project(ProjectId.stored(project_id)).websites) == 25
    log.update(project_id, description="y" * 200, websites=addresses[:20])
    longest = {it["field"]: it["after"] for it in log.read().data[0]["changes"]}
    assert (longest["description"], longest["websites"]) == ("y" * 200, addresses[:20])


def test_pages_span_months_and_return_each_entry_once(log, now):
    for number in range(7):
        log.create(number)
        now.advance(45 * DAY)
    names = [entry["resource"]["name"] for entry in log.everything("limit=3")]
    assert names == [*(f"Shop {number}" for number in range(6, -1, -1)), "Acme", "Acme"]
    months = {item["pk"]["S"] for item in table.client.scan(TableName=table.name)["Items"]}
    assert len([pk for pk in months if pk.startswith(keys.LOG_PREFIX)]) == 7


def test_filters_by_actor_action_resource_and_time(log, world, now):
    first, admin = log.create(1), world.member(log.company, "admin")
    token = world.token(admin.user_id, lifetime_seconds=9 * DAY)
    now.advance(DAY - 1)
    log.update(first, token, description="Ours")
    now.advance(40 * DAY - 1)
    log.create(2)
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
        assert [it["action"] for it in log.everything(query)] == expected, query
        assert [it["action"] for it in log.everything(f"{query}&limit=1")] == expected, query


def test_a_filtered_page_has_entries_that_follow_many_others(log):
    created = log.create(1)
    for text in ("Ours", "Theirs"):
        log.update(created, description=text)
    page = log.read("action=project.create&limit=1").data
    assert [entry["resource"]["id"] for entry in page] == [created]


def test_entries_are_omitted_after_their_days_or_listed_forever_if_these_are_0(log, now, monkeypatch):
    log.create(1)
    now.advance(401 * DAY)
    # TTL has deleted none of them.
    assert log.read().data == []
    monkeypatch.setitem(settings.__dict__, "audit_log_retention_days", 0)
    log.create(2)
    now.advance(401 * DAY)
    assert log.everything("action=project.create")[0]["resource"]["name"] == "Shop 2"


@each(
    "query",
    ["action=project.paint", "since=", "since=2026-03-04", "until=9999-01-01T00:00:00Z", "actorId=", "actor=usr_x"],
)
def test_an_unknown_filter_or_value_returns_400(query, log):
    assert log.read(query).code == "INVALID_PAYLOAD"


def test_neither_members_nor_other_organizations_see_an_entry(log, world):
    assert log.read(token=world.member(log.company).token).code == "FORBIDDEN"
    project_id = log.create(1)
    assert log.read(f"resourceId={project_id}", world.company().owner.token).data == []

"""Every list of the API: its pages have each entry once, in the order of the whole list, and cursors are its own."""

import typing
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.findings import intake
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.http.envelope import Page
from controlplane.projects import store as projects
from tests.functional.projects.builders import add_audits, add_run, make_project
from tests.support.api import Api
from tests.support.audits import make_scan
from tests.support.calls import recorded_calls
from tests.support.each import each
from tests.support.endpoints import delivered, endpoint
from tests.support.operations import Operation, operations
from tests.support.populated_organization import detection
from tests.support.world import Person, World

LISTS = [
    operation
    for operation in operations()
    if typing.get_origin(operation.route.return_type) is Page and "cursor" in (operation.route.known_query or ())
]
# A valid value of each filter.
FILTERS = {
    "status": "open",
    "priority": "P2",
    "source": "advisory",
    "projectId": "{projectId}",
    "repositoryId": "{repositoryId}",
    "vendorId": "segment",
    "assignee": "{owner}",
    "since": "2026-03-01T00:00:00Z",
    "until": "2026-04-01T00:00:00Z",
    "q": "finding",
    "sort": "priority",
    "actorId": "{owner}",
    "action": "project.create",
    "resourceId": "{projectId}",
}
# Lists that read on until enough entries match a filter. The others read what they show, and hardly more.
SEARCHED = {"/v1/inbox", "/v1/audit-log"}
# The fields by which lists are sorted, the newest entry first.
TIMES = ("connectedAt", "createdAt", "updatedAt")


class Estate:
    """An organization of a person with at least three entries in each list."""

    def __init__(self, api: Api, world: World, now: Any, owner: Person) -> None:
        self.api, self.owner = api, owner
        company = world.company(owner=owner)
        for _ in range(3):
            world.key(company)
            world.member(company)
            world.finding(company)
            world.invitation(company, world.person().email)
            repository = world.connected_repository(company)
            now.advance(1)
        body = {"name": "Third", "region": "eu-central"}
        made = api.post(f"/v1/projects?organizationId={company.organization_id}", owner.token, json_body=body).data
        for project_id in (make_project(company).project_id, ProjectId.stored(made["id"])):
            repository = repositories.link_project(repository.repository_id, Link(project_id, None, None, False))
        item = world.finding(company, repository)
        change = {"version": item.version, "assigneeId": owner.user_id}
        assert api.patch(f"/v1/inbox/{item.item_id}", owner.token, json_body=change).status == 200
        webhook, project = endpoint(company), projects.get_project(repository.links[0].project_id)
        audits = add_audits(project, count=3)
        make_scan(repository, status="failed")
        for vendor_id in ("segment", "hotjar", "mixpanel"):
            intake.record_detection(detection(project.project_id, vendor_id))
            make_scan(repository)
            add_run(project, audits[0])
            delivered(company, webhook)
            now.advance(1)
        self.names = {
            "organizationId": company.organization_id,
            "repositoryId": repository.repository_id,
            "projectId": project.project_id,
            "auditId": audits[0],
            "webhookId": webhook.webhook_id,
            "owner": owner.user_id,
        }

    def get(self, operation: Operation, query: str = "", token: str | None = None) -> Any:
        path = operation.path.format(**self.names)
        return self.api.get(f"{path}?organizationId={self.names['organizationId']}{query}", token or self.owner.token)

    def queries(self, operation: Operation) -> list[str]:
        """Returns a query of each filter that the list has."""
        filters = {**FILTERS, "status": "completed"} if operation.path.endswith("/scans") else FILTERS
        known = [name for name in operation.route.known_query or () if name in filters]
        return [f"&{name}={filters[name].format(**self.names)}" for name in known]

    def pages(self, operation: Operation, limit: int, query: str = "") -> list[list[Any]]:
        found, cursor = [], ""
        while cursor is not None:
            with recorded_calls() as calls:
                reply = self.get(operation, f"{query}&limit={limit}{cursor and f'&cursor={cursor}'}")
            read = [call.parameters for call in calls if call.operation == "Query" and "Limit" in call.parameters]
            if read and operation.path not in SEARCHED:
                assert min(it["Limit"] for it in read) <= limit + 2
                assert not any("FilterExpression" in it for it in read)
            found.append(reply.data)
            cursor = reply.body["pagination"]["nextCursor"]
            assert reply.body["pagination"]["hasMore"] is (cursor is not None)
        return found


@pytest.fixture
def owner(world):
    """Returns a person with three credentials and, besides the organizations that tests fill, two."""
    made = world.person()
    for _ in range(2):
        world.token(made.user_id)
        world.company(owner=made)
    return made


@pytest.fixture
def estate(api, world, now, owner):
    return Estate(api, world, now, owner)


@each("operation", LISTS, ids=lambda it: it.name)
def test_pages_have_every_entry_once_the_newest_first(operation, estate):
    for query in ("", *estate.queries(operation)):
        whole = [entry for page in estate.pages(operation, 100, query) for entry in page]
        assert len(whole) >= (1 if query else 3), query
        for limit in (1, 2, len(whole)):
            found = estate.pages(operation, limit, query)
            assert [entry for page in found for entry in page] == whole, query
            assert max(map(len, found)) <= limit
        for name in TIMES if "sort" not in query else ():
            times = [entry[name] for entry in whole if name in entry]
            assert times == sorted(times, reverse=True), name


def test_a_cursor_belongs_to_its_list_its_filters_and_its_organization_or_person(estate, api, world, now, owner):
    other, stranger = Estate(api, world, now, owner), world.person().token
    for operation, another in zip(LISTS, [*LISTS[1:], LISTS[0]], strict=True):
        queries = ["", *estate.queries(operation)]
        cursors = {it: estate.get(operation, f"{it}&limit=1").body["pagination"]["nextCursor"] for it in queries}
        cursor = f"&cursor={cursors['']}"
        assert estate.get(operation, cursor).status == 200
        # A filter that selects a single entry has no cursor.
        moved = [it.replace("T00:", "T01:") for it in queries if "T00:" in it]
        asked = {*queries, *moved, "".join(queries)}
        others = [f"{one}&cursor={cursors[it]}" for it in queries for one in asked if cursors[it] and one != it]
        refusals = [estate.get(operation, it) for it in others]
        refusals.append(estate.get(another, cursor))
        if operation.requires is not None:
            is_personal = operation.path in {"/v1/organizations", "/v1/me/sessions"}
            refusals.append(estate.get(operation, cursor, stranger) if is_personal else other.get(operation, cursor))
        for it in refusals:
            assert (it.code, it.error["details"][0]["code"]) == ("INVALID_PAYLOAD", "invalid_cursor"), operation.name

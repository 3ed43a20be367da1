"""The filters of GET /v1/inbox."""

import random
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest

from controlplane.rules import inbox_lists
from controlplane.store import inbox
from controlplane.store.inbox_items import InboxItem, RuntimeVendor
from controlplane.store.table import table
from tests.functional.inbox.test_list_inbox_items import listed, move, walk
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.world import Company, World


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


def fill(world: World, company: Company, now) -> list[InboxItem]:
    """Creates findings of all sources, projects, and repositories in turn. Returns them, oldest first."""
    repositories = [world.connected_repository(company) for _ in range(2)]
    project_id = make_project(company).project_id
    made = []
    for number, priority in product(range(6), ("P0", "P1", None)):
        now.advance(1)
        if number < 3:
            made.append(world.finding(company, repositories[number % 2], priority=priority))
        elif number < 5:
            vendor = RuntimeVendor(project_id, ("segment", "hotjar")[number % 2], "Vendor", "vendor.example")
            made.append(
                world.finding(
                    company, priority=priority, source="runtime", project_id=project_id, runtime_vendor=vendor
                )
            )
        else:
            made.append(world.finding(company, priority=priority))
    for number, item in enumerate(made):
        if number % 4 == 0:
            now.advance(1)
            move(item.item_id, "accepted", company)
    return [inbox.get_item(item.item_id) for item in made]


def selected(items: list[InboxItem], filters: dict[str, str]) -> list[str]:
    """Returns the IDs of the items that the filters select, most recently updated first: the model of the list."""

    def value(item: InboxItem, name: str) -> Any:
        if name == "vendorId":
            return item.runtime_vendor.vendor_id if item.runtime_vendor else None
        names = {"projectId": "project_id", "repositoryId": "repository_id"}
        return getattr(item, names.get(name, name))

    found = [
        item
        for item in items
        if all(item.updated_at >= it if name == "since" else value(item, name) == it for name, it in filters.items())
    ]
    return [item.item_id for item in sorted(found, key=lambda item: item.updated_at, reverse=True)]


def query(filters: dict[str, str]) -> str:
    return "".join(f"&{name}={quote(value)}" for name, value in filters.items())


class Test200:
    def test_any_combination_selects_what_it_says(self, api: Api, world: World, company: Company, now, monkeypatch):
        items = fill(world, company, now)
        code, runtime = items[0], items[9]
        assert code.repository_id is not None
        assert code.project_id is not None
        assert runtime.project_id is not None
        choices: dict[str, list[str]] = {
            "status": ["open", "accepted"],
            "priority": ["P0", "P1"],
            "source": ["code-audit", "runtime", "advisory"],
            "projectId": [code.project_id, runtime.project_id, "prj_unknown"],
            "repositoryId": [code.repository_id, "rep_unknown"],
            "vendorId": ["segment", "hotjar", "unknown"],
            "since": [items[6].updated_at, items[-1].updated_at, "2999-01-01T00:00:00.000Z"],
        }
        draw, hits = random.Random(7), 0
        monkeypatch.setattr(inbox_lists, "MOST_READ", 5)
        combinations = [{name: value} for name, values in choices.items() for value in values]
        for _ in range(40):
            names = draw.sample([*choices], draw.randint(2, 4))
            combinations.append({name: draw.choice(choices[name]) for name in names})
        for filters in combinations:
            wanted = selected(items, filters)
            hits += bool(wanted)
            assert walk(api, company, f"&limit={draw.choice([1, 3, 100])}{query(filters)}") == wanted, filters
        assert hits > 20

    def test_a_page_with_filters_reads_a_bounded_part_and_can_be_empty(
        self, api: Api, world: World, company: Company, now, monkeypatch
    ):
        monkeypatch.setattr(inbox_lists, "MOST_READ", 4)
        wanted = world.finding(company, priority="P0")
        for _ in range(5):
            now.advance(1)
            world.finding(company)
        limits: list[int] = []

        def noting(call, proceed):
            limits.extend([call.parameters["Limit"]] if call.operation == "Query" else [])
            return proceed()

        with intercepted(table.client, noting):
            first = listed(api, company, "&priority=P0")
        assert (first.data, limits) == ([], [5])
        assert first.body["pagination"]["hasMore"] is True
        following = f"&priority=P0&cursor={quote(first.body['pagination']['nextCursor'])}"
        assert [item["id"] for item in listed(api, company, following).data] == [wanted.item_id]

    def test_a_filter_of_repositories_reads_only_findings_that_match_otherwise(
        self, api: Api, world: World, company: Company
    ):
        repository = world.connected_repository(company)
        wanted = world.finding(company, repository, priority="P0")
        world.finding(company, repository, priority="P1")
        world.finding(company, priority="P0")
        read: list[int] = []

        def noting(call, proceed):
            if call.operation == "BatchGetItem":
                read.append(len(call.parameters["RequestItems"][table.name]["Keys"]))
            return proceed()

        with intercepted(table.client, noting):
            shown = listed(api, company, f"&repositoryId={repository.repository_id}&priority=P0").data
        assert [item["id"] for item in shown] == [wanted.item_id]
        assert 1 in read

    def test_a_repository_is_found_under_its_former_name(self, api: Api, world: World, company: Company):
        repository = world.connected_repository(company)
        item = world.finding(company, repository, repository_name="former-name")
        world.finding(company, world.connected_repository(company, owner="other"), repository_name=repository.name)
        shown = listed(api, company, f"&repositoryId={repository.repository_id}").data
        assert [it["id"] for it in shown] == [item.item_id]

    def test_a_vendor_that_is_too_long_for_a_position_is_found(self, api: Api, world: World, company: Company):
        project = make_project(company)
        vendor = RuntimeVendor(project.project_id, "segment", "😀" * 200, ".".join(["x" * 62] * 4))
        item = world.finding(company, source="runtime", project_id=project.project_id, runtime_vendor=vendor)
        assert [it["id"] for it in listed(api, company, "&vendorId=segment").data] == [item.item_id]
        assert listed(api, company, "&vendorId=hotjar").data == []

    def test_since_includes_its_own_millisecond_and_understands_time_zones(
        self, api: Api, world: World, company: Company
    ):
        world.finding(company)  # at 05:06:07.000Z
        for since, count in {
            "2026-03-04T05:06:07Z": 1,
            "2026-03-04T06:06:07.000+01:00": 1,
            "2026-03-04T05:06:06.999999Z": 1,
            "2026-03-04T05:06:07.000001Z": 0,
            "2026-03-04T05:06:07.001Z": 0,
        }.items():
            for status in ("", "&status=open"):
                assert len(listed(api, company, f"&since={quote(since)}{status}").data) == count, since

    def test_ids_of_another_organization_select_nothing(self, api: Api, world: World, company: Company):
        other = world.company()
        repository = world.connected_repository(other)
        item = world.finding(other, repository)
        for filters in (f"&repositoryId={repository.repository_id}", f"&projectId={item.project_id}"):
            assert listed(api, company, filters).data == []


class Test400:
    @each("name", ["priority", "source", "since"])
    @each("value", ["", "P4", "p0", "github", "2026-03-04", "2026-03-04T05:06:07", "1772600767", "x" * 101])
    def test_returns_400_for_a_value_that_does_not_exist(self, name: str, value: str, api: Api, world: World):
        reply = listed(api, world.company(), f"&{name}={value}")
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert reply.error["details"][0]["path"] == [name]

    @each("name", ["projectId", "repositoryId", "vendorId"])
    @each("value", ["", "x" * 101])
    def test_returns_400_for_an_id_that_is_empty_or_too_long(self, name: str, value: str, api: Api, world: World):
        reply = listed(api, world.company(), f"&{name}={value}")
        assert (reply.status, reply.error["details"][0]["path"]) == (400, [name])

    def test_a_cursor_works_only_with_the_filters_that_it_was_issued_for(
        self, api: Api, world: World, company: Company
    ):
        for _ in range(2):
            world.finding(company, priority="P0")
        filters = [
            "",
            "&status=open",
            "&priority=P0",
            "&source=advisory",
            "&priority=P0&source=advisory",
            "&since=2026-01-01T00:00:00Z",
            "&since=2026-01-02T00:00:00Z",
            "&status=open&priority=P0",
        ]
        cursors = {
            it: quote(listed(api, company, f"{it}&limit=1").body["pagination"]["nextCursor"] or "none")
            for it in filters
        }
        for own, other in product(filters, filters):
            status = listed(api, company, f"{own}&cursor={cursors[other]}").status
            assert status == (200 if own == other else 400), (own, other)

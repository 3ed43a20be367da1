"""GET /v1/code-audit/scans: newest first, filtered by repository and by status."""

import itertools

import pytest

from tests.support.api import Api
from tests.support.audits import make_scan
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.world import Company, World

PATH = "/v1/code-audit/scans"


def listed(api: Api, company: Company, query: str = "") -> list[str]:
    reply = api.get(f"{PATH}?{query}", company.owner.token)
    assert reply.status == 200, reply.text
    return [scan["id"] for scan in reply.data]


class Test200:
    def test_lists_whole_scans_newest_first(self, api: Api, world: World, now):
        company = world.company()
        repository = world.connected_repository(company)
        made = []
        for _ in range(3):
            made.append(make_scan(repository).scan_id)
            now.advance(1)
        reply = api.get(PATH, company.owner.token)
        assert [scan["id"] for scan in reply.data] == made[::-1]
        shown = api.get(f"{PATH}/{made[-1]}", company.owner.token).data
        # Only a scan of its own has the inventory, whose size would multiply the price of a list.
        assert {**reply.data[0], "inventory": None} == shown

    def test_filters_work_alone_and_together(self, api: Api, world: World, now):
        company = world.company()
        shop, blog = world.connected_repository(company), world.connected_repository(company)
        made = {}
        for repository, status in itertools.product((shop, blog), ("completed", "failed", "running")):
            made[repository, status] = make_scan(repository, status=status).scan_id
            now.advance(1)
        in_order = list(made.items())[::-1]
        for only, state in itertools.product((shop, blog, None), ("completed", "failed", "running", None)):
            query = "&".join(
                ([f"repositoryId={only.repository_id}"] if only else []) + ([f"status={state}"] if state else [])
            )
            expected = [scan_id for (of, at), scan_id in in_order if of == (only or of) and at == (state or at)]
            assert listed(api, company, query) == expected

    @pytest.mark.parametrize("status", ["queued", "canceled"])
    def test_an_unused_status_gives_an_empty_list(self, status: str, api: Api, world: World):
        company = world.company()
        make_scan(world.connected_repository(company))
        assert listed(api, company, f"status={status}") == []

    def test_a_scan_moves_from_one_status_filter_to_the_next(self, api: Api, world: World):
        company = world.company()
        make_scan(world.connected_repository(company), status="completed")
        found = {status: len(listed(api, company, f"status={status}")) for status in ("queued", "running", "completed")}
        assert found == {"queued": 0, "running": 0, "completed": 1}

    def test_another_organizations_repository_gives_an_empty_list(self, api: Api, world: World):
        other = world.company()
        repository = world.connected_repository(other)
        make_scan(repository)
        mine = world.company()
        assert listed(api, mine) == []
        assert listed(api, mine, f"repositoryId={repository.repository_id}") == []
        assert listed(api, mine, "repositoryId=nonsense") == []

    @each("filtered", ["", "status=completed&", "repositoryId={}&", "repositoryId={}&status=completed&"])
    def test_paging_returns_each_scan_once_and_reads_only_its_pages(self, filtered: str, api: Api, world: World, now):
        company = world.company()
        repository = world.connected_repository(company)
        made = []
        for status in ("completed", "failed", "completed", "completed", "failed", "completed"):
            scan = make_scan(repository, status=status)
            if status == "completed" or "status" not in filtered:
                made.append(scan.scan_id)
            now.advance(1)
        query = filtered.format(repository.repository_id)
        seen: list[str] = []
        cursor = ""
        while True:
            with recorded_calls() as calls:
                reply = api.get(f"{PATH}?{query}limit=2{cursor}", company.owner.token)
            (read,) = [call for call in calls if call.operation == "Query" and "Limit" in call.parameters]
            assert read.parameters["Limit"] <= 4
            assert "FilterExpression" not in read.parameters
            seen += [scan["id"] for scan in reply.data]
            if not reply.body["pagination"]["hasMore"]:
                break
            cursor = f"&cursor={reply.body['pagination']['nextCursor']}"
        assert seen == made[::-1]


class Test400:
    @each("query", ["status=done", "status=", "repositoryId=", "status=Completed"])
    def test_an_invalid_filter_is_rejected(self, query: str, api: Api, world: World):
        reply = api.get(f"{PATH}?{query}", world.company().owner.token)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")

    def test_returns_400_for_a_cursor_of_another_filter(self, api: Api, world: World, now):
        company = world.company()
        repository = world.connected_repository(company)
        for _ in range(3):
            make_scan(repository)
            now.advance(1)
        cursor = api.get(f"{PATH}?limit=1", company.owner.token).body["pagination"]["nextCursor"]
        for query in ("status=completed", f"repositoryId={repository.repository_id}"):
            assert api.get(f"{PATH}?{query}&cursor={cursor}", company.owner.token).status == 400

    def test_returns_400_for_a_cursor_of_another_organization(self, api: Api, world: World):
        company = world.company()
        other = world.company(owner=company.owner)
        for _ in range(2):
            make_scan(world.connected_repository(company))
        first = api.get(f"{PATH}?organizationId={company.organization_id}&limit=1", company.owner.token)
        cursor = first.body["pagination"]["nextCursor"]
        reply = api.get(f"{PATH}?organizationId={other.organization_id}&cursor={cursor}", company.owner.token)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")

"""GET /v1/inbox."""

import random
from urllib.parse import quote

import pytest

from controlplane.store import billing, inbox
from controlplane.store.table import table
from tests.support.api import Api, Reply
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.world import Company, World

STATUSES = ("open", "accepted", "dismissed", "resolved")


def listed(api: Api, company: Company, query: str = "", token: str | None = None) -> Reply:
    path = f"/v1/inbox?organizationId={company.organization_id}{query}"
    return api.get(path, token or company.owner.token)


def move(item_id: str, status: str, company: Company) -> None:
    """Changes the status, as a person would."""
    item = inbox.get_item(item_id)
    inbox.change_status(item, status, item.version, company.owner.user_id, None)


def walk(api: Api, company: Company, query: str, between=lambda: None) -> list[str]:
    """Returns the IDs of all pages in order; `between` runs after each page."""
    seen: list[str] = []
    cursor = ""
    while True:
        reply = listed(api, company, f"{query}{cursor}")
        seen += [item["id"] for item in reply.data]
        pagination = reply.body["pagination"]
        if not pagination["hasMore"]:
            return seen
        cursor = "&cursor=" + quote(pagination["nextCursor"])
        between()


class Test200:
    def test_an_item_has_these_fields_and_no_evidence(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        item = world.finding(company, repository)
        (shown,) = listed(api, company).data
        assert shown == {
            "id": item.item_id,
            "organizationId": company.organization_id,
            "title": item.title,
            "summary": "It should not be so.",
            "priority": "P2",
            "status": "open",
            "source": "code-audit",
            "projectId": repository.links[0].project_id,
            "repositoryName": repository.name,
            "githubIssue": None,
            "runtimeVendor": None,
            "updatedAt": "2026-03-04T05:06:07.000Z",
            "version": item.version,
        }

    def test_fields_that_the_source_lacks_are_null(self, api: Api, world: World):
        company = world.company()
        world.finding(company, summary=None, priority=None)
        (shown,) = listed(api, company).data
        assert [shown[name] for name in ("summary", "priority", "projectId", "repositoryName", "githubIssue")] == [
            None
        ] * 5

    def test_lists_the_most_recently_updated_first(self, api: Api, world: World, now):
        company = world.company()
        made = []
        for _ in range(3):
            made.append(world.finding(company).item_id)
            now.advance(1)
        assert [item["id"] for item in listed(api, company).data] == made[::-1]
        move(made[0], "accepted", company)
        assert [item["id"] for item in listed(api, company).data] == [made[0], made[2], made[1]]

    def test_a_changed_status_moves_the_item_to_the_top(self, api: Api, world: World, now):
        company = world.company()
        first, second = world.finding(company), world.finding(company)
        now.advance(1)
        body = {"status": "accepted", "version": first.version}
        api.patch(f"/v1/inbox/{first.item_id}", company.owner.token, json_body=body)
        assert [item["id"] for item in listed(api, company).data] == [first.item_id, second.item_id]

    @each("status", STATUSES)
    def test_filters_by_status(self, status: str, api: Api, world: World, now):
        company = world.company()
        made = {given: [world.finding(company).item_id for _ in range(2)] for given in STATUSES}
        for given, item_ids in made.items():
            for item_id in item_ids:
                now.advance(1)
                move(item_id, given, company)
        shown = listed(api, company, f"&status={status}").data
        assert {item["status"] for item in shown} == {status}
        assert {item["id"] for item in shown} == set(made[status])
        assert [item["updatedAt"] for item in shown] == sorted((item["updatedAt"] for item in shown), reverse=True)

    def test_a_new_inbox_is_empty(self, api: Api, world: World):
        reply = listed(api, world.company())
        assert reply.data == []
        assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}

    def test_omits_other_organizations_items(self, api: Api, world: World):
        world.finding(world.company())
        assert listed(api, world.company()).data == []

    def test_a_member_and_a_key_can_list_items(self, api: Api, world: World):
        company = world.company()
        world.finding(company)
        for token in (world.member(company).token, world.key(company)):
            assert len(api.get("/v1/inbox", token).data) == 1

    def test_the_default_page_size_is_50(self, api: Api, world: World):
        company = world.company()
        for _ in range(51):
            world.finding(company)
        assert len(listed(api, company).data) == 50
        assert len(listed(api, company, "&limit=100").data) == 51

    @pytest.mark.parametrize("query", ["", "&status=open"])
    def test_a_page_reads_one_item_more_than_it_returns(self, query: str, api: Api, world: World):
        company = world.company()
        for _ in range(8):
            world.finding(company)
        limits: list[int] = []

        def noting(call, proceed):
            if call.operation == "Query" and "IndexName" in call.parameters:
                limits.append(call.parameters["Limit"])
            return proceed()

        with intercepted(table.client, noting):
            listed(api, company, f"&limit=3{query}")
        assert limits == [4]

    @each("query", ["", "&status=open"])
    @each("limit", [1, 2, 3, 7, 100])
    def test_pages_show_every_item_once(self, limit: int, query: str, api: Api, world: World, now):
        company = world.company()
        made = []
        for number in range(12):
            made.append(world.finding(company).item_id)
            now.advance(number % 2)  # some of them at the same millisecond
        assert sorted(walk(api, company, f"&limit={limit}{query}")) == sorted(made)


class TestWalksWhileItemsMove:
    @each("seed", range(12))
    def test_unchanged_items_appear_exactly_once_while_others_move(self, seed: int, api: Api, world: World, now):
        draw = random.Random(seed)
        company = world.company()
        made = []
        for _ in range(20):
            made.append(world.finding(company).item_id)
            now.advance(draw.choice([0, 0.5]))
        still = set(made)
        filtered = draw.choice(["", "&status=open"])

        def between() -> None:
            now.advance(draw.choice([0, 0.25]))
            for item_id in draw.sample(made, draw.randint(0, 3)):
                move(item_id, draw.choice([s for s in STATUSES if s != inbox.get_item(item_id).status]), company)
                still.discard(item_id)
            if draw.random() < 0.5:
                world.finding(company)

        seen = walk(api, company, f"&limit={draw.randint(1, 6)}{filtered}", between)
        for item_id in still:
            assert seen.count(item_id) == 1, item_id


class Test400:
    @each("status", ["", "closed", "OPEN", "open,accepted", "null", "open%00"])
    def test_returns_400_unless_the_status_is_one_of_four(self, status: str, api: Api, world: World):
        reply = listed(api, world.company(), f"&status={status}")
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"][0]["path"] == ["status"]

    @each("limit", ["0", "101", "-1", "5_0", "1.5", "", "x"])
    def test_returns_400_for_a_limit_outside_1_to_100(self, limit: str, api: Api, world: World):
        assert listed(api, world.company(), f"&limit={limit}").code == "INVALID_PAYLOAD"

    def test_returns_400_for_a_cursor_of_another_list_filter_or_organization(self, api: Api, world: World):
        company, other = world.company(), world.company()
        for _ in range(3):
            world.finding(company)
        cursor = "&cursor=" + quote(listed(api, company, "&limit=1").body["pagination"]["nextCursor"])
        assert listed(api, company, cursor).status == 200
        assert listed(api, company, f"&status=open{cursor}").code == "INVALID_PAYLOAD"
        assert listed(api, other, cursor).code == "INVALID_PAYLOAD"
        elsewhere = f"/v1/projects?organizationId={company.organization_id}{cursor}"
        assert api.get(elsewhere, company.owner.token).code == "INVALID_PAYLOAD"
        tampered = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
        assert listed(api, company, tampered).code == "INVALID_PAYLOAD"


class Test402:
    def test_returns_402_for_a_key_after_a_downgrade_to_the_free_plan(self, api: Api, world: World):
        company = world.company()
        key = world.key(company)
        billing.change_plan(company.organization_id, "free")
        assert api.get("/v1/inbox", key).code == "PLAN_REQUIRED"


class Test403:
    def test_returns_403_without_the_scope(self, api: Api, world: World):
        company = world.company()
        token = world.token(company.owner.user_id, ["inbox.write"])
        assert listed(api, company, token=token).code == "INSUFFICIENT_SCOPE"

"""A project exists completely or not at all, keeps the last website that consent trusts, and loses no update."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.core.ids import ProjectId
from controlplane.store import audits, keys
from controlplane.store.projects import UnknownWebsite
from controlplane.store.table import table
from tests.races.stage import Stage
from tests.races.verdicts import check_first
from tests.races.yields import beyond_the_token
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.cleanup import finish_deletions
from tests.support.faults import Case, Trial, explore_faults
from tests.support.invariants import Items
from tests.support.outcomes import Outcome
from tests.support.schedules import Explored, Race, explore
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races


class Shop:
    """An organization with one project and its websites."""

    def __init__(self, world: World, api: DirectApi, websites: int = 2, plan: str = "pro") -> None:
        self.api = api
        self.company = world.company(plan)
        self.token = self.company.owner.token
        reply = self.create("Shop", [f"shop{number}.example.com" for number in range(websites)])
        self.project_id = ProjectId.stored(reply.data["id"])
        self.website_ids: list[str] = [website["id"] for website in reply.data["websites"]]
        self.path = f"/v1/projects/{self.project_id}"

    def create(self, name: str, websites: list[str]) -> Reply:
        region = self.api.get("/v1/regions").data[0]["id"]
        body = {"name": name, "region": region, "websites": websites}
        return self.api.post(f"/v1/projects?organizationId={self.company.organization_id}", self.token, json_body=body)

    def creates(self, name: str) -> Callable[[], Reply]:
        return lambda: self.create(name, ["new.example.com"])

    def deletes_website(self, number: int) -> Callable[[], Reply]:
        return lambda: self.api.delete(f"{self.path}/websites/{self.website_ids[number]}", self.token)

    def patches(self, **fields: Any) -> Callable[[], Reply]:
        return lambda: self.api.patch(self.path, self.token, json_body=fields)

    def deletes(self) -> Reply:
        return self.api.delete(self.path, self.token)

    def decides(self) -> Reply:
        return self.api.post(f"{self.path}/vendors/segment/decision", self.token, json_body={"decision": "approve"})

    def audits(self, number: int) -> Callable[[], bool]:
        """Returns the operator's act of creating an audit. The act returns True if the website still exists."""

        def act() -> bool:
            try:
                audits.create_audit(self.project_id, self.website_ids[number], 7)
            except UnknownWebsite:
                return False
            return True

        return act

    def children(self) -> list[str]:
        """Returns the sort keys of the project's items, except the project itself and its slug."""
        page = table.query(keys.organization_pk(self.project_id.organization_id), consistent=True)
        own = keys.project(*self.project_id.location).sk
        return [item["sk"] for item in page.items if self.project_id.local in item["sk"] and item["sk"] != own]

    def read(self) -> Reply:
        return self.api.get(self.path, self.token)

    def stored(self) -> dict[str, Any] | None:
        return table.get(keys.project(*self.project_id.location))


type Acts = Callable[[Shop], list[Callable[[], Reply]]]
type Replies = list[Reply]


@pytest.fixture
def race(stage: Stage) -> Callable[..., Explored]:
    """Runs the acts of one shop in every order. Calls `check` with the replies after checking the invariants."""

    def run(acts: Acts, check: Callable[[Shop, Replies], None], websites: int = 2) -> Explored:
        def scenario() -> Race:
            shop = Shop(stage.fresh(), stage.api, websites)

            def check_run(outcomes: list[Outcome]) -> None:
                replies: Replies = [outcome.get() for outcome in outcomes]
                stage.check_invariants()
                check(shop, replies)

            return Race(acts(shop), check_run)

        explored = explore(stage.client, scenario, yields_at=beyond_the_token)
        assert explored.exhaustive
        return explored

    return run


class TestEveryOrder:
    def test_the_last_of_two_websites_is_kept(self, race: Callable[..., Explored]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert sorted(reply.status for reply in replies) == [200, 409]
            assert {reply.code for reply in replies if reply.status == 409} == {"CONFLICT"}
            assert len(shop.read().data["websites"]) == 1

        race(lambda shop: [shop.deletes_website(0), shop.deletes_website(1)], check)

    def test_two_of_three_websites_can_be_deleted(self, race: Callable[..., Explored]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [200, 200]
            assert [website["id"] for website in shop.read().data["websites"]] == shop.website_ids[2:]

        race(lambda shop: [shop.deletes_website(0), shop.deletes_website(1)], check, websites=3)

    def test_a_website_is_deleted_once(self, race: Callable[..., Explored]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert sorted(reply.status for reply in replies) == [200, 404]

        race(lambda shop: [shop.deletes_website(0)] * 2, check)

    def test_concurrent_updates_of_different_fields_are_both_kept(self, race: Callable[..., Explored]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [200, 200]
            shown = shop.read().data
            assert (shown["name"], shown["description"]) == ("Market", "All we sell")

        race(lambda shop: [shop.patches(projectName="Market"), shop.patches(description="All we sell")], check)

    def test_an_update_does_not_restore_a_deleted_website(self, race: Callable[..., Explored]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [200, 200]
            shown = shop.read().data
            assert shown["name"] == "Market"
            assert [website["id"] for website in shown["websites"]] == shop.website_ids[1:]

        race(lambda shop: [shop.patches(projectName="Market"), shop.deletes_website(0)], check)

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(lambda shop: shop.patches(projectName="Market"), id="update"),
            pytest.param(lambda shop: shop.deletes_website(0), id="delete website"),
            pytest.param(lambda shop: shop.deletes, id="delete"),
        ],
    )
    def test_a_deleted_project_stays_deleted(
        self, other: Callable[[Shop], Callable[[], Reply]], race: Callable[..., Explored]
    ) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            deletion, late = replies
            assert {deletion.status, late.status} <= {200, 404}
            assert 200 in {deletion.status, late.status}
            assert shop.stored() is None
            assert shop.read().status == 404

        race(lambda shop: [shop.deletes, other(shop)], check)

    def test_a_deleted_project_gets_no_vendor(self, race: Callable[..., Explored]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            deletion, decision = replies
            assert deletion.status == 200
            assert decision.status in {200, 404}
            assert finish_deletions() == 1
            assert shop.children() == []

        race(lambda shop: [shop.deletes, shop.decides], check)

    def test_deleting_a_website_deletes_an_audit_created_concurrently(self, race: Callable[..., Explored]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert replies[0].status == 200
            assert replies[0].data["deletedAudits"] in {0, 1}
            assert len(shop.children()) == 2 * sum(website["audited"] for website in shop.read().data["websites"])

        race(lambda shop: [shop.deletes_website(0), shop.audits(0)], check)

    def test_two_projects_with_one_name_get_different_slugs(self, race: Callable[..., Explored]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [201, 201]
            assert replies[0].data["slug"] != replies[1].data["slug"]

        race(lambda shop: [shop.creates("Market"), shop.creates("Market")], check)


def test_threads_never_exceed_the_plans_number_of_projects(stage: Stage) -> None:
    shop = Shop(stage.fresh(), stage.api, plan="free")
    replies = [
        outcome.get() for outcome in run_repeatedly([shop.creates(f"Shop {number}") for number in range(8)], times=2)
    ]
    assert [reply.status for reply in replies].count(201) == 9
    assert {reply.status for reply in replies} <= {201, 402}
    assert {reply.code for reply in replies if reply.status == 402} == {"PLAN_LIMIT_REACHED"}
    stage.check_invariants()


class TestEveryFault:
    @pytest.fixture
    def break_calls(self, stage: Stage) -> Callable[..., int]:
        def run(act: Callable[[Shop], Callable[[], Reply]], check: Callable[[Shop, Case, Items], None]) -> int:
            def scenario() -> Trial:
                shop = Shop(stage.fresh(), stage.api)
                return Trial(act(shop), lambda case: check(shop, case, stage.check_invariants()))

            return explore_faults(stage.client, scenario)

        return run

    def test_a_creation_is_complete_or_absent(self, break_calls: Callable[..., int]) -> None:
        def check(shop: Shop, case: Case, items: Items) -> None:
            first = check_first(case, 201)
            assert case.second.get().status == 201
            if first is not None and first.status == 201:
                assert shop.api.get(f"/v1/projects/{first.data['id']}", shop.token).data["name"] == "Market"

        assert break_calls(lambda shop: shop.creates("Market"), check) > 20

    def test_an_update_is_applied_and_never_conflicts_with_itself(self, break_calls: Callable[..., int]) -> None:
        def check(shop: Shop, case: Case, items: Items) -> None:
            check_first(case, 200)
            assert case.second.get().status == 200
            shown = shop.read().data
            assert (shown["name"], shown["description"]) == ("Market", "All we sell")

        assert break_calls(lambda shop: shop.patches(projectName="Market", description="All we sell"), check) > 10

    def test_under_every_fault_a_single_put_never_conflicts_with_itself(self, break_calls: Callable[..., int]) -> None:
        def check(shop: Shop, case: Case, items: Items) -> None:
            check_first(case, 200)
            assert case.second.get().status == 200
            assert shop.read().data["description"] == "All we sell"

        assert break_calls(lambda shop: shop.patches(description="All we sell"), check) > 10

    def test_a_website_is_deleted_after_the_retry(self, break_calls: Callable[..., int]) -> None:
        def check(shop: Shop, case: Case, items: Items) -> None:
            first = check_first(case, 200)
            expected = {404} if first is not None and first.status == 200 else {200, 404}
            assert case.second.get().status in expected
            assert [website["id"] for website in shop.read().data["websites"]] == shop.website_ids[1:]

        assert break_calls(lambda shop: shop.deletes_website(0), check) > 10

    def test_under_every_fault_a_deleted_project_leaves_nothing_reachable(
        self, break_calls: Callable[..., int]
    ) -> None:
        def check(shop: Shop, case: Case, items: Items) -> None:
            check_first(case, 200)
            assert case.second.get().status in {200, 404}
            assert shop.stored() is None
            assert shop.read().status == 404

        assert break_calls(lambda shop: shop.deletes, check) > 10

    def test_a_vendor_decision_is_stored_after_the_retry(self, break_calls: Callable[..., int]) -> None:
        def check(shop: Shop, case: Case, items: Items) -> None:
            check_first(case, 200)
            assert case.second.get().data["state"] == "approved"
            assert len(shop.children()) == 1

        assert break_calls(lambda shop: shop.decides, check) > 10

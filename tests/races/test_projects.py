"""A project exists completely or not at all, keeps the last website that consent trusts, and loses no update."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.store import audits, leftovers
from controlplane.store.deletion_items import DeletionItem, work_item
from controlplane.store.project_slugs import MAX_FORMER
from controlplane.store.projects import get_project_by_slug
from tests.races.shop import Shop
from tests.races.stage import Stage
from tests.races.verdicts import check_first
from tests.races.yields import came_first
from tests.support.api import Reply
from tests.support.cleanup import finish_deletions
from tests.support.faults import Case, Trial
from tests.support.invariants import Items
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races


type Acts = Callable[[Shop], list[Callable[[], Reply]]]
type Replies = list[Reply]


@pytest.fixture
def race(stage: Stage) -> Callable[..., None]:
    """Runs the acts of one shop in every order. Calls `check` with the replies."""

    def run(acts: Acts, check: Callable[[Shop, Replies], None], websites: int = 2) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world, stage.api, websites)
            return Race(acts(shop), lambda outcomes: check(shop, [it.get() for it in outcomes]))

        stage.race(scenario)

    return run


class TestEveryOrder:
    def test_the_last_of_two_websites_is_kept(self, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert sorted(reply.status for reply in replies) == [200, 409]
            assert {reply.code for reply in replies if reply.status == 409} == {"CONFLICT"}
            assert len(shop.read().data["websites"]) == 1

        race(lambda shop: [shop.deletes_website(0), shop.deletes_website(1)], check)

    def test_two_of_three_websites_can_be_deleted(self, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [200, 200]
            assert [website["id"] for website in shop.read().data["websites"]] == shop.website_ids[2:]

        race(lambda shop: [shop.deletes_website(0), shop.deletes_website(1)], check, websites=3)

    def test_a_website_is_deleted_once(self, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert sorted(reply.status for reply in replies) == [200, 404]

        race(lambda shop: [shop.deletes_website(0)] * 2, check)

    def test_concurrent_updates_of_different_fields_are_both_kept(self, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [200, 200]
            shown = shop.read().data
            assert (shown["name"], shown["description"]) == ("Market", "All we sell")

        race(lambda shop: [shop.patches(projectName="Market"), shop.patches(description="All we sell")], check)

    def test_an_update_does_not_restore_a_deleted_website(self, race: Callable[..., None]) -> None:
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
        self, other: Callable[[Shop], Callable[[], Reply]], race: Callable[..., None]
    ) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            deletion, late = replies
            assert {deletion.status, late.status} <= {200, 404}
            assert 200 in {deletion.status, late.status}
            assert shop.stored() is None
            assert shop.read().status == 404

        race(lambda shop: [shop.deletes, other(shop)], check)

    def test_a_deleted_project_gets_no_vendor(self, stage: Stage, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            deletion, decision = replies
            assert deletion.status == 200
            assert decision.status == (404 if came_first(stage.ran, 0) else 200)
            assert finish_deletions() == 1
            assert shop.children() == []

        race(lambda shop: [shop.deletes, shop.decides], check)

    def test_deleting_a_website_deletes_an_audit_created_concurrently(self, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert replies[0].status == 200
            assert replies[0].data["deletedAudits"] in {0, 1}
            assert len(shop.children()) == 2 * sum(website["audited"] for website in shop.read().data["websites"])

        race(lambda shop: [shop.deletes_website(0), shop.audits(0)], check)

    def test_two_projects_with_one_name_get_different_slugs(self, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [201, 201]
            assert replies[0].data["slug"] != replies[1].data["slug"]

        race(lambda shop: [shop.creates("Market"), shop.creates("Market")], check)

    def test_a_former_slug_goes_to_one_of_those_that_claim_it(self, race: Callable[..., None]) -> None:
        def acts(shop: Shop) -> list[Callable[[], Reply]]:
            shop.patches(projectName="Market")()
            return [shop.patches(projectName="Shop"), shop.creates("Shop")]

        def check(shop: Shop, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [200, 201]
            slugs = [replies[0].data["projectSlug"], replies[1].data["slug"]]
            assert sorted(slug == "shop" for slug in slugs) == [False, True]
            holder = shop.project_id if slugs[0] == "shop" else replies[1].data["id"]
            assert get_project_by_slug(shop.company.organization_id, "shop")[0].project_id == holder
            assert get_project_by_slug(shop.company.organization_id, "market")[0].project_id == shop.project_id

        race(acts, check)

    def test_of_two_concurrent_renames_every_slug_leads_to_the_project(self, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [200, 200]
            for slug in ("shop", "market", "store"):
                assert get_project_by_slug(shop.company.organization_id, slug)[0].project_id == shop.project_id

        race(lambda shop: [shop.patches(projectName="Market"), shop.patches(projectName="Store")], check)


def test_a_former_slug_of_a_deleted_project_is_kept_by_the_one_that_claims_it(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        shop = Shop(world, stage.api)
        shop.patches(projectName="Market")()
        shop.deletes()

        def clean_up() -> object:
            deletion = DeletionItem.from_item(work_item(shop.project_id).item)
            return leftovers.remove_slugs(leftovers.Subject.of(deletion, final=False), None)

        def check(outcomes: list[Outcome]) -> None:
            created, cleaned = (outcome.get() for outcome in outcomes)
            assert cleaned is None
            assert created.data["slug"] == "shop"
            assert get_project_by_slug(shop.company.organization_id, "shop")[0].project_id == created.data["id"]

        return Race([shop.creates("Shop"), clean_up], check)

    stage.race(scenario)


class TestEveryOrderOfTwoLists:
    """A client that knows only `trustedOrigins`, and everything that changes the websites at the same time."""

    def test_one_of_the_last_two_entries_is_kept_next_to_an_audited_website(self, race: Callable[..., None]) -> None:
        def acts(shop: Shop) -> list[Callable[[], Reply]]:
            shop.audited_only(2)
            return [shop.deletes_website(0), shop.deletes_website(1)]

        def check(shop: Shop, replies: Replies) -> None:
            assert sorted(reply.status for reply in replies) == [200, 409]
            assert len(shop.read().data["consent"]["trustedOrigins"]) == 1
            assert shop.shown()[-1] == (shop.website_ids[2], shop.origins[2])

        race(acts, check, websites=3)

    def test_a_list_without_a_website_and_its_deletion_remove_it_once(self, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert replies[0].status == 200
            assert replies[1].status in {200, 404}
            assert shop.shown() == [(shop.website_ids[1], shop.origins[1])]

        race(lambda shop: [shop.trusts(shop.origins[1]), shop.deletes_website(0)], check)

    def test_the_only_entry_of_a_new_list_is_not_deleted(self, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: Replies) -> None:
            assert replies[0].status == 200
            assert replies[1].status in {200, 409}
            ((website_id, origin),) = shop.shown()
            assert origin == shop.origins[0]
            # Deleted before the list named it again: then it is a new website.
            assert (website_id == shop.website_ids[0]) == (replies[1].status == 409)

        race(lambda shop: [shop.trusts(shop.origins[0]), shop.deletes_website(0)], check)

    @pytest.mark.parametrize("older", [True, False], ids=["trustedOrigins", "websites"])
    def test_a_list_without_a_website_never_deletes_its_new_audit(self, older: bool, race: Callable[..., None]) -> None:
        def check(shop: Shop, replies: list[Any]) -> None:
            reply, audited = replies
            assert reply.status == 200
            assert reply.data["products"]["consent"]["trustedOrigins"] == shop.origins[1:]
            assert [website_id for website_id, _ in shop.shown()] == shop.website_ids[not audited :]
            assert len(shop.children()) == 2 * bool(audited)

        def acts(shop: Shop) -> list[Callable[[], Any]]:
            kept = shop.origins[1]
            return [shop.trusts(kept) if older else shop.patches(websites=[kept]), shop.audits(0)]

        race(acts, check)

    def test_lists_of_both_generations_keep_what_is_audited(self, race: Callable[..., None]) -> None:
        def acts(shop: Shop) -> list[Callable[[], Reply]]:
            shop.audited_only(1)
            return [
                shop.trusts(shop.origins[0], "older.example.com"),
                shop.patches(websites=[*shop.origins, "current.example.com"]),
            ]

        def check(shop: Shop, replies: Replies) -> None:
            assert [reply.status for reply in replies] == [200, 200]
            *kept, (_, added) = shop.shown()
            assert kept == list(zip(shop.website_ids, shop.origins, strict=True))
            assert added in {"older.example.com", "current.example.com"}
            assert shop.read().data["consent"]["trustedOrigins"] == [shop.origins[0], added]

        race(acts, check)

    def test_a_members_list_never_removes_a_website_added_concurrently(self, race: Callable[..., None]) -> None:
        def acts(shop: Shop) -> list[Callable[[], Reply]]:
            body = {"consent": {"trustedOrigins": [*shop.origins, "member.example.com"]}}
            member = shop.world.member(shop.company).token
            return [
                shop.patches(websites=[*shop.origins, "owner.example.com"]),
                lambda: shop.api.patch(shop.path, member, json_body=body),
            ]

        def check(shop: Shop, replies: Replies) -> None:
            assert replies[0].status == 200
            assert replies[1].status in {200, 403}
            # The owner may remove the member's website, but not the other way around.
            assert [origin for _, origin in shop.shown()] == [*shop.origins, "owner.example.com"]

        race(acts, check)

    def test_a_website_that_loses_its_last_audit_stays_if_it_is_listed_again(self, race: Callable[..., None]) -> None:
        def acts(shop: Shop) -> list[Callable[[], Any]]:
            audit_id = shop.audited_only(1)
            return [shop.trusts(*shop.origins), shop.deletes_audit(audit_id)]

        def check(shop: Shop, replies: list[Any]) -> None:
            reply, deleted_website = replies
            assert reply.data["products"]["consent"]["trustedOrigins"] == shop.origins
            assert deleted_website in {None, shop.website_ids[1]}
            assert (shop.shown()[1][0] == shop.website_ids[1]) == (deleted_website is None)
            assert shop.children() == []

        race(acts, check)


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
            def scenario(world: World) -> Trial:
                shop = Shop(world, stage.api)
                return Trial(act(shop), lambda case: check(shop, case, stage.check_invariants()))

            return stage.faults(scenario)

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

    def test_under_every_fault_a_renamed_project_keeps_its_latest_former_slugs(
        self, break_calls: Callable[..., int]
    ) -> None:
        def act(shop: Shop) -> Callable[[], Reply]:
            for number in range(MAX_FORMER):
                shop.patches(projectName=f"Name {number}")()
            return shop.patches(projectName="Market")

        def check(shop: Shop, case: Case, items: Items) -> None:
            check_first(case, 200)
            assert case.second.get().data["projectSlug"] == "market"
            slugs = {key.sk for key in items if key.sk.startswith("PSLUG#")}
            assert slugs == {"PSLUG#market", *(f"PSLUG#name-{number}" for number in range(MAX_FORMER))}

        assert break_calls(act, check) > 10

    def test_under_every_fault_a_single_put_never_conflicts_with_itself(self, break_calls: Callable[..., int]) -> None:
        def check(shop: Shop, case: Case, items: Items) -> None:
            check_first(case, 200)
            assert case.second.get().status == 200
            assert shop.read().data["description"] == "All we sell"

        assert break_calls(lambda shop: shop.patches(description="All we sell"), check) > 10

    def test_a_new_list_is_applied_and_keeps_what_is_audited(self, break_calls: Callable[..., int]) -> None:
        def act(shop: Shop) -> Callable[[], Reply]:
            audits.create_audit(shop.project_id, shop.website_ids[0], 7)
            return shop.trusts("new.example.com")

        def check(shop: Shop, case: Case, items: Items) -> None:
            check_first(case, 200)
            assert case.second.get().status == 200
            (audited, _), (_, added) = shop.shown()
            assert (audited, added) == (shop.website_ids[0], "new.example.com")
            assert len(shop.children()) == 2

        assert break_calls(act, check) > 10

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

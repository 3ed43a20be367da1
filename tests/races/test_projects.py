"""A project exists completely or not at all, keeps the last website that consent trusts, and loses no update.

Invariants check each project's slugs, websites, and audits, and the number of projects, after each run.
"""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.audits import store as audits
from controlplane.erasure import leftovers
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.queues.deletion_items import DeletionItem, work_item
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects.changes import MAX_FORMER, UnknownWebsite
from controlplane.projects.store import get_project, get_project_by_slug
from tests.races.faults import check_first
from tests.races.stage import Stage, faults, race
from tests.support.api import Reply
from tests.support.world import World


class Shop:
    """An organization with one project and its websites, and the requests of its clients."""

    def __init__(self, world: World, stage: Stage, websites: int = 2, plan: str = "pro") -> None:
        self.api, self.world, self.company = stage.api, world, world.company(plan)
        self.token = self.company.owner.token
        self.origins = [f"shop{number}.example.com" for number in range(websites)]
        reply = self.create("Shop", self.origins)
        self.project_id = ProjectId.stored(reply.data["id"])
        self.website_ids: list[str] = [website["id"] for website in reply.data["websites"]]
        self.path = f"/v1/projects/{self.project_id}"

    def create(self, name: str, websites: list[str]) -> Reply:
        body = {"name": name, "region": "eu-central", "websites": websites}
        return self.api.post(f"/v1/projects?organizationId={self.company.organization_id}", self.token, json_body=body)

    def creates(self, name: str) -> Callable[[], Reply]:
        return lambda: self.create(name, ["new.example.com"])

    def drops(self, number: int) -> Callable[[], Reply]:
        """Returns the request that deletes a website."""
        return lambda: self.api.delete(f"{self.path}/websites/{self.website_ids[number]}", self.token)

    def patches(self, token: str | None = None, **fields: Any) -> Callable[[], Reply]:
        return lambda: self.api.patch(self.path, token or self.token, json_body=fields)

    def renames(self, name: str) -> Callable[[], Reply]:
        return self.patches(projectName=name)

    def trusts(self, *origins: str, token: str | None = None) -> Callable[[], Reply]:
        """Returns the request of a client that knows only `trustedOrigins`."""
        return self.patches(token, consent={"trustedOrigins": origins})

    def deletes(self) -> Reply:
        return self.api.delete(self.path, self.token)

    def decides(self) -> Reply:
        return self.api.post(f"{self.path}/vendors/segment/decision", self.token, json_body={"decision": "approve"})

    def audit(self, number: int = 0) -> str:
        """Audits the website. Returns the audit's ID."""
        return audits.create_audit(get_project(self.project_id), self.website_ids[number], "daily").audit_id

    def audits(self, number: int) -> Callable[[], bool]:
        """Returns the act of creating an audit. The act returns True if the website still exists."""

        def act() -> bool:
            try:
                self.audit(number)
            except UnknownWebsite:
                return False
            return True

        return act

    def audited_only(self, number: int) -> str:
        """Audits the website, and removes it from the consent entries. Returns the audit's ID."""
        audit_id = self.audit(number)
        assert self.trusts(*(origin for origin in self.origins if origin != self.origins[number]))().status == 200
        return audit_id

    def starts(self, audit_id: str) -> Callable[[], Reply]:
        return lambda: self.api.post(f"{self.path}/audits/{audit_id}/runs", self.token)

    def runs(self) -> list[dict[str, Any]]:
        pk = keys.organization_pk(self.company.organization_id)
        return table.query(pk, prefix="AUDITRUN#", consistent=True).items

    def children(self) -> list[str]:
        """Returns the sort keys of the project's items, except the project itself and its slug."""
        page = table.query(keys.organization_pk(self.project_id.organization_id), consistent=True)
        own = keys.project(*self.project_id.location).sk
        return [item["sk"] for item in page.items if self.project_id.local in item["sk"] and item["sk"] != own]

    def read(self) -> Reply:
        return self.api.get(self.path, self.token)

    def shown(self) -> list[tuple[str, str]]:
        """Returns the ids and origins of the websites, in order."""
        return [(website["id"], website["origin"]) for website in self.read().data["websites"]]

    def trusted(self) -> list[str]:
        return [*self.read().data["consent"]["trustedOrigins"]]

    def named(self, slug: str) -> str:
        """Returns the ID of the project to which the slug leads."""
        return str(get_project_by_slug(self.company.organization_id, slug)[0].project_id)

    def is_gone(self) -> bool:
        return table.get(keys.project(*self.project_id.location)) is None and self.read().status == 404


def statuses(replies: list[Reply]) -> list[int]:
    return [reply.status for reply in replies]


@pytest.mark.parametrize(
    ("dropped", "websites", "replies", "left"),
    [
        pytest.param((0, 1), 2, [200, 409], 1, id="the last one is kept"),
        pytest.param((0, 1), 3, [200, 200], 1, id="two of three"),
        pytest.param((0, 0), 2, [200, 404], 1, id="the same one"),
    ],
)
@race()
def test_two_websites_are_deleted_unless_none_remains(world, *, stage, dropped, websites, replies, left):
    shop = Shop(world, stage, websites)
    came = yield [shop.drops(number) for number in dropped]
    assert sorted(statuses(came)) == replies
    assert {reply.code for reply in came if reply.status == 409} <= {"CONFLICT"}
    assert len(shop.shown()) == left
    assert websites == 2 or shop.shown() == [(shop.website_ids[2], shop.origins[2])]


@race()
def test_concurrent_updates_of_different_fields_are_both_kept(world, stage):
    shop = Shop(world, stage)
    replies = yield [shop.renames("Market"), shop.patches(description="All we sell")]
    assert statuses(replies) == [200, 200]
    shown = shop.read().data
    assert (shown["name"], shown["description"]) == ("Market", "All we sell")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda shop: shop.renames("Market"), id="update"),
        pytest.param(lambda shop: shop.drops(0), id="delete website"),
        pytest.param(lambda shop: shop.deletes, id="delete"),
    ],
)
@race()
def test_a_deleted_project_stays_deleted(world, stage, other):
    shop = Shop(world, stage)
    replies = yield [shop.deletes, other(shop)]
    assert {200} <= {*statuses(replies)} <= {200, 404}
    assert shop.is_gone()


@race()
def test_deleting_a_website_deletes_an_audit_created_concurrently(world, stage):
    shop = Shop(world, stage)
    deleted, _ = yield [shop.drops(0), shop.audits(0)]
    assert deleted.status == 200
    assert deleted.data["deletedAudits"] in {0, 1}
    assert len(shop.children()) == sum(website["audited"] for website in shop.read().data["websites"])


@race()
def test_an_audit_has_one_run_at_a_time(world, stage):
    shop = Shop(world, stage)
    assert sorted(statuses((yield [shop.starts(shop.audit())] * 2))) == [201, 409]
    assert [it["status"] for it in shop.runs()] == ["pending"]


@race()
def test_a_deleted_audit_starts_no_run(world, stage):
    shop = Shop(world, stage)
    deleted, started = yield [shop.drops(0), shop.starts(shop.audit())]
    assert (deleted.status, started.status) == (200, 404 if stage.came_first(0) else 201)
    assert len(shop.runs()) == (started.status == 201)


@faults()
def test_under_every_fault_a_run_is_started_once(world, stage):
    shop = Shop(world, stage)
    case = yield shop.starts(shop.audit())
    assert case.second.get().status in ({409} if check_first(case, 201) else {201, 409})
    assert len(shop.runs()) == 1


@race()
def test_two_projects_with_one_name_get_different_slugs(world, stage):
    shop = Shop(world, stage)
    first, second = yield [shop.creates("Market")] * 2
    assert statuses([first, second]) == [201, 201]
    assert first.data["slug"] != second.data["slug"]


@race()
def test_a_former_slug_goes_to_one_of_those_that_claim_it(world, stage):
    shop = Shop(world, stage)
    shop.renames("Market")()
    renamed, created = yield [shop.renames("Shop"), shop.creates("Shop")]
    assert statuses([renamed, created]) == [200, 201]
    slugs = [renamed.data["projectSlug"], created.data["slug"]]
    assert sorted(slug == "shop" for slug in slugs) == [False, True]
    assert shop.named("shop") == (shop.project_id if slugs[0] == "shop" else created.data["id"])
    assert shop.named("market") == shop.project_id


@race()
def test_of_two_concurrent_renames_every_slug_leads_to_the_project(world, stage):
    shop = Shop(world, stage)
    replies = yield [shop.renames("Market"), shop.renames("Store")]
    assert statuses(replies) == [200, 200]
    assert {shop.named(slug) for slug in ("shop", "market", "store")} == {shop.project_id}


@race()
def test_a_former_slug_of_a_deleted_project_is_kept_by_the_one_that_claims_it(world, stage):
    shop = Shop(world, stage)
    shop.renames("Market")()
    shop.deletes()

    def clean_up() -> object:
        deletion = DeletionItem.from_item(work_item(shop.project_id).item)
        return leftovers.remove_slugs(leftovers.Subject.of(deletion, final=False), None)

    created, cleaned = yield [shop.creates("Shop"), clean_up]
    assert (created.data["slug"], cleaned) == ("shop", None)
    assert shop.named("shop") == created.data["id"]


# Lists of both generations: of a client that knows only `trustedOrigins`, and of everything else that changes websites.


@race()
def test_one_of_the_last_two_entries_is_kept_next_to_an_audited_website(world, stage):
    shop = Shop(world, stage, websites=3)
    shop.audited_only(2)
    replies = yield [shop.drops(0), shop.drops(1)]
    assert sorted(statuses(replies)) == [200, 409]
    assert len(shop.trusted()) == 1
    assert shop.shown()[-1] == (shop.website_ids[2], shop.origins[2])


@race()
def test_a_list_without_a_website_and_its_deletion_remove_it_once(world, stage):
    shop = Shop(world, stage)
    listed, deleted = yield [shop.trusts(shop.origins[1]), shop.drops(0)]
    assert listed.status == 200
    assert deleted.status in {200, 404}
    assert shop.shown() == [(shop.website_ids[1], shop.origins[1])]


@race(ends={200, 409})
def test_the_only_entry_of_a_new_list_is_not_deleted(world, stage):
    shop = Shop(world, stage)
    listed, deleted = yield [shop.trusts(shop.origins[0]), shop.drops(0)]
    assert listed.status == 200
    ((website_id, origin),) = shop.shown()
    assert origin == shop.origins[0]
    # Deleted before the list named it again: then it is a new website.
    assert (website_id == shop.website_ids[0]) == (deleted.status == 409)
    return deleted.status


@pytest.mark.parametrize("older", [True, False], ids=["trustedOrigins", "websites"])
@race()
def test_a_list_without_a_website_never_deletes_its_new_audit(world, stage, older):
    shop = Shop(world, stage)
    kept = shop.origins[1]
    listed, audited = yield [shop.trusts(kept) if older else shop.patches(websites=[kept]), shop.audits(0)]
    assert listed.status == 200
    assert listed.data["products"]["consent"]["trustedOrigins"] == shop.origins[1:]
    assert [website_id for website_id, _ in shop.shown()] == shop.website_ids[not audited :]
    assert len(shop.children()) == audited


@race()
def test_lists_of_both_generations_keep_what_is_audited(world, stage):
    shop = Shop(world, stage)
    shop.audited_only(1)
    current = shop.patches(websites=[*shop.origins, "current.example.com"])
    replies = yield [shop.trusts(shop.origins[0], "older.example.com"), current]
    assert statuses(replies) == [200, 200]
    *kept, (_, added) = shop.shown()
    assert kept == list(zip(shop.website_ids, shop.origins, strict=True))
    assert added in {"older.example.com", "current.example.com"}
    assert shop.trusted() == [shop.origins[0], added]


@race()
def test_a_members_list_never_removes_a_website_added_concurrently(world, stage):
    shop = Shop(world, stage)
    of_member = shop.trusts(*shop.origins, "member.example.com", token=world.member(shop.company).token)
    replies = yield [shop.patches(websites=[*shop.origins, "owner.example.com"]), of_member]
    assert statuses(replies) in ([200, 200], [200, 403])
    # The owner may remove the member's website, but not the other way around.
    assert [origin for _, origin in shop.shown()] == [*shop.origins, "owner.example.com"]


@race()
def test_a_website_that_loses_its_last_audit_stays_if_it_is_listed_again(world, stage):
    shop = Shop(world, stage)
    audit_id = shop.audited_only(1)
    listed, deleted = yield [
        shop.trusts(*shop.origins),
        lambda: audits.delete_audit(get_project(shop.project_id), audit_id),
    ]
    assert listed.data["products"]["consent"]["trustedOrigins"] == shop.origins
    assert deleted in {None, shop.website_ids[1]}
    assert (shop.shown()[1][0] == shop.website_ids[1]) == (deleted is None)
    assert shop.children() == []


@race()
def test_of_two_creations_one_gets_the_plans_last_project(world, stage):
    shop = Shop(world, stage, plan="free")
    for number in range(8):
        shop.creates(f"Shop {number}")()
    replies = yield [shop.creates("One"), shop.creates("Other")]
    assert sorted(reply.code if reply.status != 201 else "" for reply in replies) == ["", "PLAN_LIMIT_REACHED"]


@faults()
def test_under_every_fault_a_creation_is_complete_or_absent(world, stage):
    shop = Shop(world, stage)
    case = yield shop.creates("Market")
    stage.check_invariants()
    first = check_first(case, 201)
    assert case.second.get().status == 201
    if first:
        assert shop.api.get(f"/v1/projects/{first.data['id']}", shop.token).data["name"] == "Market"


# The second one is a single put.
@pytest.mark.parametrize("changes", [{"projectName": "Market", "description": "New"}, {"description": "New"}])
@faults()
def test_under_every_fault_an_update_never_conflicts_with_itself(world, stage, changes):
    shop = Shop(world, stage)
    case = yield shop.patches(**changes)
    check_first(case, 200)
    assert case.second.get().status == 200
    shown = shop.read().data
    assert (shown["name"], shown["description"]) == (changes.get("projectName", "Shop"), "New")


@faults()
def test_under_every_fault_a_renamed_project_keeps_its_latest_former_slugs(world, stage):
    shop = Shop(world, stage)
    for number in range(MAX_FORMER):
        shop.renames(f"Name {number}")()
    case = yield shop.renames("Market")
    check_first(case, 200)
    assert case.second.get().data["projectSlug"] == "market"
    slugs = {key.sk for key in stage.check_invariants() if key.sk.startswith("PSLUG#")}
    assert slugs == {"PSLUG#market", *(f"PSLUG#name-{number}" for number in range(MAX_FORMER))}


@faults()
def test_under_every_fault_a_new_list_is_applied_and_keeps_what_is_audited(world, stage):
    shop = Shop(world, stage)
    shop.audits(0)()
    case = yield shop.trusts("new.example.com")
    check_first(case, 200)
    assert case.second.get().status == 200
    (audited, _), (_, added) = shop.shown()
    assert (audited, added, len(shop.children())) == (shop.website_ids[0], "new.example.com", 1)


@faults()
def test_under_every_fault_a_website_is_deleted_after_the_retry(world, stage):
    shop = Shop(world, stage)
    case = yield shop.drops(0)
    assert case.second.get().status in ({404} if check_first(case, 200) else {200, 404})
    assert shop.shown() == [(shop.website_ids[1], shop.origins[1])]


@faults()
def test_under_every_fault_a_deleted_project_leaves_nothing_reachable(world, stage):
    shop = Shop(world, stage)
    case = yield shop.deletes
    check_first(case, 200)
    assert case.second.get().status in {200, 404}
    assert shop.is_gone()


@faults()
def test_under_every_fault_a_vendor_decision_is_stored_after_the_retry(world, stage):
    shop = Shop(world, stage)
    case = yield shop.decides
    check_first(case, 200)
    assert case.second.get().data["state"] == "approved"
    assert len(shop.children()) == 1

"""`assent-ops organization`, `plan` and `credits`."""

from controlplane.core.plans import PLANS
from controlplane.queues import messages
from controlplane.queues.messages import PublishScan, Queue
from controlplane.store.scans import unlocks
from tests.functional.conftest import FakeClock
from tests.functional.ops.conftest import Ops
from tests.support.api import Api
from tests.support.audits import make_issue, make_scan
from tests.support.each import each
from tests.support.world import World, table_dump

NO_TOP_UP = {"enabled": False, "threshold": None, "amount": None, "monthlyLimit": None, "usedThisMonth": 0}


class TestCreate:
    def test_organization_create_uses_the_free_plan_and_its_owner(self, ops: Ops, api: Api, world: World):
        person = world.person()
        made = ops("organization", "create", "--name", "Blue Shop", "--owner", person.email).document
        assert made == {
            "organizationId": made["organizationId"],
            "slug": "blue-shop",
            "name": "Blue Shop",
            "plan": "free",
            "credits": 0,
            "owners": 1,
            "apiKeys": 0,
            "projects": 0,
            "createdAt": "2026-03-04T05:06:07.000Z",
        }
        (mine,) = api.get("/v1/organizations", person.token).data
        assert (mine["organizationId"], mine["role"]) == (made["organizationId"], "owner")

    def test_organization_create_uses_the_given_slug(self, ops: Ops, world: World):
        owner = world.person().email
        assert ops("organization", "create", "--name", "X", "--owner", owner, "--slug", "b-1").document["slug"] == "b-1"

    def test_organization_create_exits_4_for_a_taken_slug_and_suggests_free_ones(self, ops: Ops, world: World):
        company = world.company()
        before = table_dump()
        outcome = ops("organization", "create", "--name", "X", "--owner", company.owner.email, "--slug", company.slug)
        assert outcome.exit_code == 4
        assert f"{company.slug}-2" in outcome.error["message"]
        assert table_dump() == before

    @each("slug", ["ab", "Acme", "a--b", "-ab", "a" * 21, "a#b", ""])
    def test_organization_create_exits_2_for_an_invalid_slug(self, ops: Ops, world: World, slug: str):
        person = world.person()
        before = table_dump()
        outcome = ops("organization", "create", "--name", "X", "--owner", person.email, "--slug", slug)
        assert outcome.exit_code == 2
        assert table_dump() == before

    def test_organization_create_exits_3_for_an_unknown_owner(self, ops: Ops):
        assert ops("organization", "create", "--name", "X", "--owner", "unknown@example.com").exit_code == 3
        assert table_dump() == []


class TestShow:
    def test_organization_show_finds_by_slug_and_by_id(self, ops: Ops, world: World):
        company = world.company("starter")
        world.key(company)
        shown = ops("organization", "show", company.slug).document
        assert shown == ops("organization", "show", company.organization_id).document
        assert (shown["plan"], shown["apiKeys"], shown["owners"]) == ("starter", 1, 1)

    @each("reference", ["nowhere", "org_0000000000000000", "org_", ""])
    def test_organization_show_exits_3_for_an_unknown_organization(self, ops: Ops, reference: str):
        outcome = ops("organization", "show", reference)
        assert outcome.exit_code == 3
        assert outcome.error["code"] == "NOT_FOUND"


class TestList:
    def test_organization_list_shows_a_users_organizations_by_slug(self, ops: Ops, world: World):
        second = world.company()
        first = world.company(owner=second.owner)
        world.company()
        listed = ops("organization", "list", "--user", second.owner.email).document
        assert [it["slug"] for it in listed] == sorted([first.slug, second.slug])

    def test_organization_list_is_empty_for_a_user_without_organizations(self, ops: Ops, ops_text: Ops, world: World):
        person = world.person()
        assert ops("organization", "list", "--user", person.email).document == []
        assert ops_text("organization", "list", "--user", person.email).stdout == "None.\n"

    def test_organization_list_requires_a_user(self, ops: Ops):
        assert ops("organization", "list").exit_code == 2


class TestPlanSet:
    def test_a_downgrade_stops_the_keys_and_an_upgrade_revives_them(self, ops: Ops, api: Api, world: World):
        company = world.company("pro")
        key = world.key(company)
        assert ops("plan", "set", company.slug, "free").document["plan"] == "free"
        assert api.get("/v1/me", key).status == 402
        assert ops("plan", "set", company.organization_id, "enterprise").document["plan"] == "enterprise"
        assert api.get("/v1/me", key).status == 200

    @each("plan", PLANS)
    def test_plan_set_knows_every_plan(self, ops: Ops, world: World, plan: str):
        assert ops("plan", "set", world.company().slug, plan).document["plan"] == plan

    def test_plan_set_exits_2_for_an_unknown_plan(self, ops: Ops, world: World):
        outcome = ops("plan", "set", world.company().slug, "gold")
        assert outcome.exit_code == 2
        assert "enterprise" in outcome.error["message"]

    def test_plan_set_exits_3_for_an_unknown_organization(self, ops: Ops):
        assert ops("plan", "set", "nowhere", "pro").exit_code == 3


class TestCredits:
    def test_credits_can_be_added_and_removed(self, ops: Ops, world: World):
        company = world.company()
        expected = {"organizationId": company.organization_id, "credits": 120}
        assert ops("credits", "add", company.slug, "120").document == expected
        assert ops("credits", "take", company.slug, "20").document["credits"] == 100
        assert ops("credits", "show", company.slug).document == {
            "organizationId": company.organization_id,
            "credits": 100,
            "topUp": NO_TOP_UP,
        }

    def test_credits_never_drop_below_zero(self, ops: Ops, world: World):
        company = world.company()
        world.credits(company, 5)
        before = table_dump()
        outcome = ops("credits", "take", company.slug, "6")
        assert outcome.exit_code == 1
        assert outcome.error["code"] == "REFUSED"
        assert table_dump() == before

    @each("amount", ["0", "-1", "1.5", "many", "1000000001", "NaN", ""])
    def test_credits_must_be_a_positive_integer(self, ops: Ops, world: World, amount: str):
        company = world.company()
        before = table_dump()
        for verb in ("add", "take"):
            assert ops("credits", verb, company.slug, "--", amount).exit_code == 2
        assert table_dump() == before

    def test_credits_exit_3_for_an_unknown_organization(self, ops: Ops):
        for words in (("add", "nowhere", "5"), ("take", "nowhere", "5"), ("show", "nowhere"), ("list", "nowhere")):
            assert ops("credits", *words).exit_code == 3

    def test_the_ledger_lists_every_change_by_month_and_kind(self, ops: Ops, world: World, now: FakeClock):
        company = world.company("free")
        ops("top-up", "enable", company.slug, "--threshold", "10", "--amount", "100", "--monthly-limit", "1")
        ops("credits", "add", company.slug, "20")
        now.seconds += 31 * 86_400
        scan = make_scan(world.connected_repository(company), issues=[make_issue(number) for number in range(5)])
        unlocks.unlock_scan(
            scan, company.owner.user_id, messages.entry(Queue.SCAN_EXECUTION, PublishScan(scan_id=scan.scan_id))
        )
        operator = {"at": "2026-03-04T05:06:07.000Z", "kind": "operator", "credits": 20, "scanId": None, "by": None}
        unlock = {
            "at": "2026-04-04T05:06:07.000Z",
            "kind": "unlock",
            "credits": -50,
            "scanId": scan.scan_id,
            "by": company.owner.user_id,
        }
        top_up = {**unlock, "kind": "top-up", "credits": 100, "by": None}
        assert ops("credits", "list", company.slug).document == [operator, unlock, top_up]
        assert ops("credits", "list", company.slug, "--month", "2026-03").document == [operator]
        invoiced = ops("credits", "list", company.slug, "--month", "2026-04", "--kind", "top-up").document
        assert invoiced == [top_up]

    def test_the_ledger_exits_2_for_an_unknown_month_or_kind(self, ops: Ops, world: World):
        slug = world.company().slug
        for option in (("--month", "March"), ("--month", "2026-13"), ("--kind", "gift")):
            assert ops("credits", "list", slug, *option).exit_code == 2


class TestTopUp:
    ENABLED = ("--threshold", "50", "--amount", "100", "--monthly-limit", "3")

    def test_can_be_enabled_changed_shown_and_disabled(self, ops: Ops, world: World):
        company = world.company()
        expected = {"enabled": True, "threshold": 50, "amount": 100, "monthlyLimit": 3, "usedThisMonth": 0}
        assert ops("top-up", "enable", company.slug, *self.ENABLED).document == {
            "organizationId": company.organization_id,
            "credits": 0,
            "topUp": expected,
        }
        changed = ops("top-up", "enable", company.slug, "--threshold", "0", "--amount", "70", "--monthly-limit", "1")
        assert changed.document["topUp"] == {**expected, "threshold": 0, "amount": 70, "monthlyLimit": 1}
        disabled = {**changed.document["topUp"], "enabled": False}
        assert ops("top-up", "disable", company.slug).document["topUp"] == disabled
        assert ops("top-up", "show", company.slug).document["topUp"] == disabled

    def test_exits_2_for_invalid_settings(self, ops: Ops, world: World):
        slug = world.company().slug
        before = table_dump()
        for name, value in (("threshold", "-1"), ("amount", "0"), ("monthly-limit", "0"), ("monthly-limit", "1001")):
            options = dict(zip(self.ENABLED[::2], self.ENABLED[1::2], strict=True)) | {f"--{name}": value}
            assert ops("top-up", "enable", slug, *(word for pair in options.items() for word in pair)).exit_code == 2
        assert ops("top-up", "enable", slug, "--threshold", "1", "--amount", "1").exit_code == 2
        assert table_dump() == before

    def test_exits_3_for_an_unknown_organization(self, ops: Ops):
        for words in (("enable", "nowhere", *self.ENABLED), ("disable", "nowhere"), ("show", "nowhere")):
            assert ops("top-up", *words).exit_code == 3


class TestDelete:
    def test_organization_delete_ends_all_access_and_reports_what_it_deleted(self, ops: Ops, api: Api, world: World):
        company = world.company()
        key = world.key(company)
        done = ops("organization", "delete", company.slug, "--yes").document
        assert done == {"deleted": True, "organizationId": company.organization_id, "slug": company.slug}
        assert api.get("/v1/me", key).status == 401
        assert api.get("/v1/organizations", company.owner.token).data == []
        assert ops("organization", "show", company.slug).exit_code == 3
        assert ops("organization", "delete", company.organization_id, "--yes").exit_code == 3

    def test_organization_delete_asks_first(self, ops: Ops, world: World):
        company = world.company()
        before = table_dump()
        assert ops("organization", "delete", company.slug).exit_code == 2
        assert table_dump() == before

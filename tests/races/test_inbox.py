"""No change of an inbox item is lost, a stale version is always rejected, and a decision also updates its finding."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.store import inbox, keys, projects, publications
from controlplane.store.inbox_items import Discovery, InboxItem, RuntimeVendor
from controlplane.store.legs import set_expression
from controlplane.store.project_items import Address, ProjectItem
from controlplane.store.status_history import Status
from controlplane.store.table import LegFailed, Update, table
from dashboard import triage
from tests.races.stage import Stage
from tests.races.verdicts import check_first
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.faults import Case, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.table import PREPARED
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races

LATER = "2026-03-04T06:00:00.000Z"


class Bench:
    """A runtime finding about a project's vendor, which both users and sources change."""

    def __init__(self, world: World, api: DirectApi, *, found: bool = True) -> None:
        self.world, self.api = world, api
        self.company = world.company()
        self.token = self.company.owner.token
        self.project: ProjectItem = projects.create_project(
            self.company.organization_id,
            "Shop",
            region="eu-central",
            addresses=[Address("shop.example.com", "domain")],
            branding="assent",
        )
        self.vendor = RuntimeVendor(self.project.project_id, "segment", "Segment", "segment.com")
        self.discovery: Discovery = world.discovery(
            self.company,
            source="runtime",
            identity=(self.project.project_id, "segment"),
            project_id=self.project.project_id,
            runtime_vendor=self.vendor,
        )
        if found:
            self.detects()

    @property
    def item(self) -> InboxItem:
        return inbox.get_item(self.discovery.item_id)

    def detects(self, **changes: Any) -> None:
        """Publishes a detection of the vendor as the intake does: finding and vendor in one transaction."""
        discovery = self.discovery._replace(**changes)
        located = discovery.item_id.location
        vendor_key = keys.vendor(*self.project.project_id.location, "segment")
        while True:
            item, vendor = table.batch_get([keys.inbox_item(*located), vendor_key])
            decided = vendor is not None and "state" in vendor
            write = publications.publish_leg(discovery._replace(settled=decided), item)
            if write is None:
                return
            attributes = {**self.vendor.to_item(), "inboxItemId": discovery.item_id}
            known = Update(
                vendor_key,
                set_expression(attributes),
                "attribute_exists(#state)" if decided else "attribute_not_exists(#state)",
                attributes,
            )
            try:
                table.transact({"finding": write, "vendor": known}, PREPARED)
            except LegFailed:
                continue
            return

    def patches(self, status: str, version: str | None = None, token: str | None = None) -> Callable[[], Reply]:
        path = f"/v1/inbox/{self.discovery.item_id}"
        sent = {"status": status, "version": version or self.item.version}
        return lambda: self.api.patch(path, token or self.token, json_body=sent)

    def decides(self) -> Reply:
        path = f"/v1/projects/{self.project.project_id}/vendors/segment/decision"
        return self.api.post(path, self.token, json_body={"decision": "approve"})

    def listed(self, status: Status) -> list[str]:
        return [item.item_id for item in inbox.list_items(self.company.organization_id, status, 10, None).items]


class TestEveryOrder:
    def test_of_two_changes_of_one_version_one_succeeds(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            bench = Bench(world, stage.api)
            other = bench.world.member(bench.company)
            acts = [bench.patches("accepted"), bench.patches("dismissed", token=other.token)]

            def check(outcomes: list[Outcome]) -> None:
                replies: list[Reply] = [outcome.get() for outcome in outcomes]
                assert sorted(reply.status for reply in replies) == [200, 409]
                (good,) = [reply for reply in replies if reply.status == 200]
                (stale,) = [reply for reply in replies if reply.status == 409]
                item = bench.item
                assert (item.status, item.version) == (good.data["status"], good.data["version"])
                assert stale.error["details"] == {"currentVersion": item.version, "currentStatus": item.status}
                assert bench.listed(item.status) == [item.item_id]

            return Race(acts, check)

        stage.race(scenario)

    def test_a_decision_resolves_and_an_earlier_change_is_not_lost_unseen(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            bench = Bench(world, stage.api)
            acts = [bench.decides, bench.patches("dismissed")]

            def check(outcomes: list[Outcome]) -> None:
                decision, change = (outcome.get() for outcome in outcomes)
                item = bench.item
                assert decision.status == 200
                assert decision.data["inboxItemId"] == item.item_id
                # The change preceded the decision, or it conflicted with it.
                assert item.status == "resolved"
                if change.status == 409:
                    assert change.error["details"] == {"currentVersion": item.version, "currentStatus": "resolved"}
                else:
                    assert (change.status, change.data["status"]) == (200, "dismissed")
                assert bench.listed("resolved") == [item.item_id]
                assert bench.listed("dismissed") == bench.listed("open") == []

            return Race(acts, check)

        stage.race(scenario)

    def test_a_decision_and_the_first_detection_leave_a_resolved_finding(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            bench = Bench(world, stage.api, found=False)

            def check(outcomes: list[Outcome]) -> None:
                decision: Reply = outcomes[0].get()
                outcomes[1].get()
                assert decision.status == 200
                assert bench.item.status == "resolved"
                assert bench.listed("resolved") == [bench.item.item_id]

            return Race([bench.decides, bench.detects], check)

        stage.race(scenario)

    def test_a_change_and_a_newer_detection_are_both_kept(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            bench = Bench(world, stage.api)
            acts = [bench.patches("accepted"), lambda: bench.detects(observed_at=LATER, priority="P0")]

            def check(outcomes: list[Outcome]) -> None:
                reply: Reply = outcomes[0].get()
                outcomes[1].get()
                assert bench.item.priority == "P0"
                assert (reply.status, bench.item.status) in {(200, "accepted"), (409, "open")}

            return Race(acts, check)

        stage.race(scenario)

    def test_two_publications_create_one_item(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            bench = Bench(world, stage.api, found=False)
            later = bench.discovery._replace(observed_at=LATER, title="Later")

            def check(outcomes: list[Outcome]) -> None:
                for outcome in outcomes:
                    outcome.get()
                assert bench.item.title == "Later"
                assert len(bench.listed("open")) == 1

            return Race(
                [lambda: publications.publish_finding(bench.discovery), lambda: publications.publish_finding(later)],
                check,
            )

        stage.race(scenario)


class TestUndo:
    def test_undo_and_another_change_dont_overwrite_each_other(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            bench = Bench(world, stage.api)
            user_id = bench.company.owner.user_id
            dismissed = inbox.change_status(bench.item, "dismissed", bench.item.version, user_id, "not ours")
            undo = triage.Decision(triage.UNDO)
            acts = [lambda: triage.decide(dismissed, undo, dismissed.version, user_id), bench.patches("accepted")]

            def check(outcomes: list[Outcome]) -> None:
                undone, change = outcomes[0].error is None, outcomes[1].get().status == 200
                assert undone is not change
                if not undone:
                    assert isinstance(outcomes[0].error, inbox.StaleVersion)
                kept = [entry.status for entry in bench.item.history]
                assert kept == ["open", "dismissed", "open" if undone else "accepted"]

            return Race(acts, check)

        stage.race(scenario)


class TestEveryFault:
    def test_under_every_fault_a_change_never_conflicts_with_itself(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            bench = Bench(world, stage.api)

            def check(case: Case) -> None:
                check_first(case, 200)
                again: Reply = case.second.get()
                assert (again.status, again.data["status"]) == (200, "accepted")
                assert bench.item.version == again.data["version"]
                assert bench.listed("accepted") == [bench.item.item_id]

            return Trial(bench.patches("accepted"), check)

        assert stage.faults(scenario) > 15

    def test_under_every_fault_a_publication_creates_one_item(self, stage: Stage) -> None:
        def scenario(world: World) -> Trial:
            bench = Bench(world, stage.api, found=False)

            def check(case: Case) -> None:
                case.second.get()
                assert bench.listed("open") == [bench.discovery.item_id]

            return Trial(lambda: publications.publish_finding(bench.discovery), check)

        assert stage.faults(scenario) > 8


def test_sixteen_editors_each_see_what_they_replace(stage: Stage) -> None:
    """The history of an item is a chain: each accepted change names the version that the previous one created."""
    bench = Bench(stage.fresh(), stage.api)
    path = f"/v1/inbox/{bench.discovery.item_id}"
    statuses = ("open", "accepted", "dismissed", "resolved")
    chain: list[tuple[str, str]] = []

    def editor(number: int) -> Callable[[], None]:
        token = bench.world.member(bench.company).token

        def edit() -> None:
            seen = stage.api.get(path, token).data
            wanted = statuses[(statuses.index(seen["status"]) + 1 + number % 3) % 4]
            body = {"status": wanted, "version": seen["version"]}
            reply = stage.api.patch(path, token, json_body=body)
            assert reply.status in {200, 409}, reply.text
            if reply.status == 200:
                chain.append((seen["version"], reply.data["version"]))

        return edit

    start = bench.item.version
    for outcome in run_repeatedly([editor(number) for number in range(16)], times=4):
        outcome.get()
    following = dict(chain)
    assert len(following) == len(chain), "two changes replaced the same version"
    version, steps = start, 0
    while version in following:
        version, steps = following[version], steps + 1
    assert (version, steps) == (bench.item.version, len(chain))
    assert bench.listed(bench.item.status) == [bench.item.item_id]
    stage.check_invariants()


class TestManyItems:
    def test_a_change_of_many_items_and_one_of_an_item_dont_overwrite_each_other(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            bench = Bench(world, stage.api)
            sent = [{"id": bench.item.item_id, "status": "dismissed", "version": bench.item.version}]

            def many() -> Reply:
                return bench.api.patch("/v1/inbox", bench.token, json_body={"items": sent})

            def check(outcomes: list[Outcome]) -> None:
                replies: list[Reply] = [outcome.get() for outcome in outcomes]
                (result,) = replies[0].data["results"]
                assert sorted((result["statusCode"], replies[1].status)) == [200, 409]
                assert bench.item.status == ("dismissed" if result["statusCode"] == 200 else "accepted")

            return Race([many, bench.patches("accepted")], check)

        stage.race(scenario)

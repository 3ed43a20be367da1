"""A vendor's decision and its finding change together, even with a concurrent detection."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.store import detections, inbox, keys, projects, vendors
from controlplane.store.detections import Detection
from controlplane.store.inbox import StaleVersion
from controlplane.store.inbox_items import Evidence, InboxItem, RuntimeVendor
from controlplane.store.project_items import Address, ProjectItem
from controlplane.store.table import table
from tests.races.stage import Stage
from tests.support.cleanup import finish_deletions
from tests.support.faults import Case, Kind, Trial
from tests.support.outcomes import Outcome
from tests.support.schedules import Race
from tests.support.threads import run_repeatedly
from tests.support.world import World

pytestmark = pytest.mark.races


class Shop:
    """A project with a vendor that is detected and decided on."""

    def __init__(self, world: World) -> None:
        self.company = world.company()
        self.project: ProjectItem = projects.create_project(
            self.company.organization_id,
            "Shop",
            region="eu-central",
            addresses=[Address("example.com", "domain")],
            branding="assent",
        )

    def detects(self, second: int = 0) -> Callable[[], None]:
        """Returns an act that records a detection at that second, on a page of that number."""
        detection = Detection(
            vendor=RuntimeVendor(self.project.project_id, "segment", f"Segment {second}", "segment.com"),
            category=None,
            title="New vendor",
            summary="A vendor was seen.",
            priority="P2",
            evidence=(Evidence("A page", f"https://shop.example.com/{second}"),),
            observed_at=f"2026-03-04T05:00:{second:02d}.000Z",
        )
        return lambda: detections.record_detection(detection)

    def decides(self) -> str | None:
        return vendors.decide_vendor(self.project, "segment", "approved", self.company.owner.user_id)

    def dismisses(self) -> bool:
        """Dismisses the finding at the version it reads. Returns True if the change succeeded."""
        (item,) = self.findings()
        try:
            inbox.change_status(
                InboxItem.from_item(item), "dismissed", item["version"], self.company.owner.user_id, None
            )
        except StaleVersion:
            return False
        return True

    def pages(self) -> list[int]:
        """Returns the pages in the evidence, newest first. The vendor and its finding have the same."""
        (finding,) = self.findings()
        pages = [int(piece["url"].rpartition("/")[2]) for piece in finding["evidence"]]
        assert [int(piece["url"].rpartition("/")[2]) for piece in self.vendor()["evidence"]] == pages
        return pages

    def vendor(self) -> dict[str, Any]:
        organization_id, local = self.project.project_id.location
        return table.get(keys.vendor(organization_id, local, "segment")) or {}

    def findings(self) -> list[dict[str, Any]]:
        pk = keys.organization_pk(self.company.organization_id)
        return table.query(pk, prefix=keys.INBOX_PREFIX, consistent=True).items


class TestEveryOrder:
    def test_a_decision_and_the_first_detection_end_in_a_resolved_finding(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world)

            def check(outcomes: list[Outcome]) -> None:
                decided = outcomes[0].get()
                outcomes[1].get()
                (finding,) = shop.findings()
                assert (shop.vendor()["state"], finding["status"]) == ("approved", "resolved")
                assert shop.vendor()["inboxItemId"] == finding["itemId"]
                assert decided in {None, finding["itemId"]}

            return Race([shop.decides, shop.detects()], check)

        stage.race(scenario)

    def test_a_decision_and_a_later_detection_end_in_a_resolved_finding(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world)
            shop.detects()()

            def check(outcomes: list[Outcome]) -> None:
                assert outcomes[0].get() == shop.findings()[0]["itemId"]
                outcomes[1].get()
                assert (shop.vendor()["state"], shop.findings()[0]["status"]) == ("approved", "resolved")
                assert shop.vendor()["name"] == "Segment 1"

            return Race([shop.decides, shop.detects(1)], check)

        stage.race(scenario)

    def test_two_first_detections_create_one_finding_of_the_later(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world)

            def check(outcomes: list[Outcome]) -> None:
                for outcome in outcomes:
                    outcome.get()
                assert [item["runtimeVendor"]["name"] for item in shop.findings()] == ["Segment 2"]
                assert shop.vendor()["lastSeenAt"] == "2026-03-04T05:00:02.000Z"
                assert shop.pages() == [2, 1]

            return Race([shop.detects(1), shop.detects(2)], check)

        stage.race(scenario)

    @pytest.mark.parametrize(("first", "second"), [(1, 2), (1, 6), (6, 7)], ids=["both late", "one late", "both newer"])
    def test_two_detections_of_a_known_vendor_lose_no_evidence(self, stage: Stage, first: int, second: int) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world)
            shop.detects(5)()

            def check(outcomes: list[Outcome]) -> None:
                for outcome in outcomes:
                    outcome.get()
                expected = sorted({5, first, second}, reverse=True)
                assert shop.pages() == expected
                vendor, (finding,) = shop.vendor(), shop.findings()
                assert vendor["firstSeenAt"] == f"2026-03-04T05:00:0{expected[-1]}.000Z"
                assert vendor["lastSeenAt"] == finding["observedAt"] == f"2026-03-04T05:00:0{expected[0]}.000Z"
                assert vendor["name"] == finding["runtimeVendor"]["name"] == f"Segment {expected[0]}"

            return Race([shop.detects(first), shop.detects(second)], check)

        stage.race(scenario)

    def test_a_decision_and_a_late_detection_keep_the_evidence(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world)
            shop.detects(5)()

            def check(outcomes: list[Outcome]) -> None:
                assert outcomes[0].get() == shop.findings()[0]["itemId"]
                outcomes[1].get()
                assert (shop.vendor()["state"], shop.findings()[0]["status"]) == ("approved", "resolved")
                assert shop.pages() == [5, 1]

            return Race([shop.decides, shop.detects(1)], check)

        stage.race(scenario)

    def test_a_status_set_by_a_user_is_never_lost(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world)
            shop.detects()()

            def check(outcomes: list[Outcome]) -> None:
                changed = outcomes[0].get()
                outcomes[1].get()
                (finding,) = shop.findings()
                assert finding["status"] == ("dismissed" if changed else "open")
                assert finding["runtimeVendor"]["name"] == "Segment 1"

            return Race([shop.dismisses, shop.detects(1)], check)

        stage.race(scenario)

    def test_a_decision_and_a_change_of_status_are_both_in_the_history(self, stage: Stage) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world)
            shop.detects()()

            def check(outcomes: list[Outcome]) -> None:
                outcomes[0].get()
                dismissed = outcomes[1].get()
                (finding,) = shop.findings()
                assert shop.vendor()["state"] == "approved"
                statuses = [*(change["status"] for change in finding["history"]), finding["status"]]
                both = ["open", "dismissed", "resolved"], ["open", "resolved", "dismissed"]
                assert statuses in (both if dismissed else [["open", "resolved"]])

            return Race([shop.decides, shop.dismisses], check)

        stage.race(scenario)

    @pytest.mark.parametrize("act", [Shop.decides, lambda shop: shop.detects()()], ids=["decision", "detection"])
    def test_a_deleted_project_gets_no_vendor(self, stage: Stage, act: Callable[[Shop], Any]) -> None:
        def scenario(world: World) -> Race:
            shop = Shop(world)

            def deletes() -> None:
                projects.delete_project(shop.project)

            def check(outcomes: list[Outcome]) -> None:
                outcomes[0].get()
                assert outcomes[1].error is None or isinstance(outcomes[1].error, projects.UnknownProject)
                finish_deletions()
                with pytest.raises(projects.UnknownProject):
                    act(shop)
                assert shop.vendor() == {}

            return Race([deletes, lambda: act(shop)], check)

        stage.race(scenario)


def test_threads_of_detections_and_a_decision_leave_one_finding(stage: Stage) -> None:
    shop = Shop(stage.fresh())
    run_repeatedly([*(shop.detects(number) for number in range(7)), shop.decides])
    shop.detects(8)()
    assert shop.pages() == [8, *range(6, -1, -1)]
    (finding,) = shop.findings()
    assert (shop.vendor()["state"], finding["status"]) == ("approved", "resolved")
    assert shop.vendor()["inboxItemId"] == finding["itemId"]


def test_a_detection_redelivered_after_any_fault_is_stored_once(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        shop = Shop(world)

        def check(case: Case) -> None:
            if case.fault.kind in {Kind.NONE, Kind.CONFLICT, Kind.LOST_ON_THE_WIRE, Kind.LOST_THEN_CONFLICT}:
                case.first.get()
            case.second.get()
            (finding,) = shop.findings()
            assert (shop.vendor()["inboxItemId"], finding["status"]) == (finding["itemId"], "open")
            assert (shop.vendor()["revision"], shop.pages()) == (1, [0])

        return Trial(shop.detects(), check)

    assert stage.faults(scenario) > 10

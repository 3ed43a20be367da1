"""No change of an inbox item is lost, a stale version is always rejected, and a decision also updates its finding."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.findings import inbox, intake, snoozes
from controlplane.findings.code_uses import FoundVendor, record_uses
from controlplane.findings.items import CodeUse, InboxItem, Status, VendorPlace
from controlplane.platform.core.ids import MemberId
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from dashboard.findings import triage
from tests.functional.projects.builders import make_project
from tests.races.faults import HIDDEN, check_first
from tests.races.stage import Stage, faults, race
from tests.races.threads import run_repeatedly
from tests.support.api import Reply
from tests.support.cleanup import finish_deletions, swept
from tests.support.populated_organization import detection
from tests.support.world import World, publish_finding


class Bench:
    """A project with a vendor that is detected and decided on, and the vendor's finding, which users change."""

    def __init__(self, world: World, stage: Stage, seen: int | None = 0) -> None:
        """seen: the second of the first detection, if there was one."""
        self.world, self.api, self.company = world, stage.api, world.company()
        self.token, self.id = self.company.owner.token, self.company.organization_id
        self.project = make_project(self.company)
        if seen is not None:
            self.detects(seen)()

    def detects(self, second: int = 0) -> Callable[[], object]:
        """Returns an act that records a detection at that second, on a page of that number."""
        fields = {"name": f"Segment {second}", "seenOn": [f"https://shop.example.com/{second}"]}
        at = f"2026-03-04T05:00:{second:02d}.000Z"
        found = detection(self.project.project_id, category=None, observedAt=at, **fields)
        return lambda: intake.record_detection(found)

    def decides(self) -> Reply:
        path = f"/v1/projects/{self.project.project_id}/vendors/segment/decision"
        return self.api.post(path, self.token, json_body={"decision": "approve"})

    def scans(self, repository_id: str) -> Callable[[], None]:
        """Returns an act that publishes the vendor as found in the repository."""
        use = CodeUse(repository_id, "shop", "scn_1", "2026-03-04T05:00:00.000Z", "https://git.test/tree")
        found = {"segment": FoundVendor("Segment", "analytics", (VendorPlace("a.html", gated=False),))}
        return lambda: record_uses(self.project.project_id, use, found, lambda _: True)

    def patches(self, status: str, token: str | None = None) -> Callable[[], Reply]:
        """Returns the request that changes the finding as it is now."""
        path, body = f"/v1/inbox/{self.item_id}", {"status": status, "version": self.item.version}
        return lambda: self.api.patch(path, token or self.token, json_body=body)

    def deletes(self) -> None:
        projects.delete_project(self.project)

    @property
    def stored(self) -> dict[str, Any]:
        (item,) = table.query(keys.organization_pk(self.id), prefix=keys.INBOX_PREFIX, consistent=True).items
        return item

    @property
    def item(self) -> InboxItem:
        return InboxItem.from_item(self.stored)

    @property
    def item_id(self) -> str:
        return str(self.item.item_id)

    def vendor(self) -> dict[str, Any]:
        organization_id, local = self.project.project_id.location
        return table.get(keys.vendor(organization_id, local, "segment")) or {}

    def listed(self, status: Status) -> list[str]:
        return [item.item_id for item in inbox.list_items(self.id, status, 10, None).items]

    def check(self, seconds: list[int], state: str | None, status: str) -> None:
        """Checks that vendor and finding show the detections of these seconds, newest first, and agree."""
        vendor, finding = self.vendor(), self.stored
        for evidence in (vendor["evidence"], finding["evidence"]):
            assert [int(it["url"].rpartition("/")[2]) for it in evidence] == seconds
        first, last = (f"2026-03-04T05:00:{second:02d}.000Z" for second in (seconds[-1], seconds[0]))
        assert (vendor["firstSeenAt"], vendor["lastSeenAt"], finding["observedAt"]) == (first, last, last)
        assert vendor["name"] == finding["runtimeVendor"]["name"] == f"Segment {seconds[0]}"
        assert (vendor.get("state"), vendor["inboxItemId"]) == (state, finding["itemId"])
        assert self.listed(status) == [finding["itemId"]]


@race()
def test_of_two_changes_of_one_version_one_succeeds(world, stage):
    bench = Bench(world, stage)
    acts = [bench.patches("accepted"), bench.patches("dismissed", world.member(bench.company).token)]
    replies = yield acts
    good, stale = sorted(replies, key=lambda reply: reply.status)
    assert (good.status, stale.status) == (200, 409)
    item = bench.item
    assert (item.status, item.version) == (good.data["status"], good.data["version"])
    assert stale.error["details"] == {"currentVersion": item.version, "currentStatus": item.status}
    assert bench.listed(item.status) == [item.item_id]


@race()
def test_a_change_of_many_items_and_one_of_an_item_dont_overwrite_each_other(world, stage):
    bench = Bench(world, stage)
    sent = {"items": [{"id": bench.item_id, "status": "dismissed", "version": bench.item.version}]}
    many, one = yield [lambda: stage.api.patch("/v1/inbox", bench.token, json_body=sent), bench.patches("accepted")]
    (result,) = many.data["results"]
    assert sorted((result["statusCode"], one.status)) == [200, 409]
    assert bench.item.status == ("dismissed" if result["statusCode"] == 200 else "accepted")


@race(ends={(200, True), (409, False)})
def test_a_member_who_is_removed_meanwhile_is_no_assignee(world, stage):
    bench = Bench(world, stage)
    user_id = world.member(bench.company).user_id
    path, body = f"/v1/inbox/{bench.item_id}", {"assigneeId": user_id, "version": bench.item.version}
    member = f"/v1/members/{MemberId.of_user(bench.id, user_id)}"
    assigned, removed = yield [
        lambda: stage.api.patch(path, bench.token, json_body=body),
        lambda: stage.api.delete(member, bench.token),
    ]
    assert removed.status == 200
    assert stage.api.get(path, bench.token).data["assignee"] is None
    assert stage.api.get(f"/v1/inbox?organizationId={bench.id}&assignee={user_id}", bench.token).data == []
    return assigned.status, bench.item.version != body["version"]


@race(ends={(200, "accepted"), (409, "open")})
def test_the_end_of_a_dismissal_and_a_change_dont_overwrite_each_other(world, stage):
    bench = Bench(world, stage)
    user_id, end = bench.company.owner.user_id, "2026-03-04T05:06:06.000Z"
    inbox.change_status(bench.item, "dismissed", bench.item.version, user_id, None, until=end)
    change, _ = yield [bench.patches("accepted"), lambda: swept(snoozes.reopen_due)]
    swept(snoozes.reopen_due)
    assert [entry.status for entry in bench.item.history] == ["open", "dismissed", bench.item.status]
    assert bench.listed(bench.item.status) == [bench.item_id]
    return change.status, bench.item.status


@race(inbox.StaleVersion)
def test_undo_and_another_change_dont_overwrite_each_other(world, stage):
    bench = Bench(world, stage)
    user_id = bench.company.owner.user_id
    dismissed = inbox.change_status(bench.item, "dismissed", bench.item.version, user_id, "not ours")
    decision = triage.Decision(triage.UNDO)
    undo, change = yield [
        lambda: triage.decide(dismissed, decision, dismissed.version, user_id),
        bench.patches("accepted"),
    ]
    undone = not isinstance(undo, inbox.StaleVersion)
    assert undone is (change.status != 200)
    kept = [entry.status for entry in bench.item.history]
    assert kept == ["open", "dismissed", "open" if undone else "accepted"]


@race()
def test_a_decision_resolves_and_an_earlier_change_is_not_lost_unseen(world, stage):
    bench = Bench(world, stage)
    decision, change = yield [bench.decides, bench.patches("dismissed")]
    item = bench.item
    assert (decision.status, decision.data["inboxItemId"]) == (200, item.item_id)
    bench.check([0], "approved", "resolved")
    # The change preceded the decision, or it conflicted with it.
    statuses = [entry.status for entry in item.history]
    if change.status == 409:
        assert change.error["details"] == {"currentVersion": item.version, "currentStatus": "resolved"}
        assert statuses == ["open", "resolved"]
    else:
        assert (change.status, change.data["status"]) == (200, "dismissed")
        assert statuses == ["open", "dismissed", "resolved"]
    assert bench.listed("dismissed") == bench.listed("open") == []


@pytest.mark.parametrize(
    ("seen", "second", "shown"), [(None, 0, [0]), (0, 1, [1, 0]), (5, 1, [5, 1])], ids=["first", "later", "late"]
)
@race()
def test_a_decision_and_a_detection_end_in_a_resolved_finding(world, stage, seen, second, shown):
    bench = Bench(world, stage, seen)
    decision, _ = yield [bench.decides, bench.detects(second)]
    assert decision.status == 200
    assert decision.data["inboxItemId"] in ({bench.item_id} if seen is not None else {None, bench.item_id})
    bench.check(shown, "approved", "resolved")


@pytest.mark.parametrize(
    ("seen", "first", "second"),
    [(None, 1, 2), (5, 1, 2), (5, 1, 6), (5, 6, 7)],
    ids=["first ones", "both late", "one late", "both newer"],
)
@race()
def test_two_detections_are_one_finding_and_lose_no_evidence(world, stage, seen, first, second):
    bench = Bench(world, stage, seen)
    yield [bench.detects(first), bench.detects(second)]
    bench.check(sorted({first, second, seen} - {None}, reverse=True), None, "open")


@pytest.mark.parametrize("seen", [None, 0], ids=["new", "detected"])
@pytest.mark.parametrize("other", ["decision", "detection", "scan"])
@race()
def test_a_scan_keeps_what_else_is_written_about_a_vendor(world, stage, other, seen):
    bench = Bench(world, stage, seen)
    acts = {"decision": bench.decides, "detection": bench.detects(1), "scan": bench.scans("rep_2")}
    yield [bench.scans("rep_1"), acts[other]]
    vendor = bench.vendor()
    assert {use["repositoryId"] for use in vendor["code"]} == {"rep_1"} | ({"rep_2"} if other == "scan" else set())
    assert vendor.get("state") == ("approved" if other == "decision" else None)
    assert vendor["name"] == ("Segment 1" if other == "detection" else "Segment" if seen is None else "Segment 0")


@race(ends={(200, "accepted"), (409, "open")})
def test_a_change_and_a_newer_detection_are_both_kept(world, stage):
    bench = Bench(world, stage)
    change, _ = yield [bench.patches("accepted"), bench.detects(1)]
    bench.check([1, 0], None, bench.item.status)
    return change.status, bench.item.status


@pytest.mark.parametrize("act", ["decision", "detection"])
@race()
def test_a_change_of_the_websites_and_one_of_a_vendor_are_both_in_the_configuration(world, stage, act):
    bench = Bench(world, stage)
    acts: dict[str, Callable[[], object]] = {"decision": bench.decides, "detection": bench.detects(1)}
    path, websites = f"/v1/projects/{bench.project.project_id}", ["new.example.com"]
    changed, _ = yield [lambda: bench.api.patch(path, bench.token, json_body={"websites": websites}), acts[act]]
    assert changed.status == 200
    backend = changed.data["products"]["consent"]["backendURL"]
    shown = bench.api.get(f"{backend.removeprefix('https://api.assent.test')}/configuration").data
    ((name, state),) = [(vendor["name"], vendor["state"]) for vendor in shown["vendors"]]
    assert (shown["origins"], name, state) == (
        websites,
        *{"decision": ("Segment 0", "approved"), "detection": ("Segment 1", None)}[act],
    )


@pytest.mark.parametrize("act", ["decision", "detection"])
@race(projects.UnknownProject)
def test_a_deleted_project_gets_no_vendor(world, stage, act):
    bench = Bench(world, stage, None)
    acts = {"decision": bench.decides, "detection": bench.detects()}
    deleted, _ = yield [bench.deletes, acts[act]]
    assert deleted is None
    finish_deletions()
    if act == "decision":
        assert bench.decides().status == 404
    else:
        with pytest.raises(projects.UnknownProject):
            bench.detects()()
    assert bench.vendor() == {}


@race()
def test_two_publications_create_one_item(world, stage):
    company = world.company()
    found = world.discovery(company)
    later = found._replace(observed_at="2026-03-04T06:00:00.000Z", title="Later")
    yield [lambda: publish_finding(found), lambda: publish_finding(later)]
    (item,) = inbox.list_items(company.organization_id, "open", 10, None).items
    assert item.title == "Later"


def test_sixteen_editors_each_see_what_they_replace(stage):
    """The history of an item is a chain: each accepted change names the version that the previous one created."""
    bench = Bench(stage.fresh(), stage)
    path, start = f"/v1/inbox/{bench.item_id}", bench.item.version
    statuses = ("open", "accepted", "dismissed", "resolved")
    chain: list[tuple[str, str]] = []

    def editor(number: int) -> Callable[[], None]:
        token = bench.world.member(bench.company).token

        def edit() -> None:
            seen = stage.api.get(path, token).data
            wanted = statuses[(statuses.index(seen["status"]) + 1 + number % 3) % 4]
            reply = stage.api.patch(path, token, json_body={"status": wanted, "version": seen["version"]})
            assert reply.status in {200, 409}, reply.text
            if reply.status == 200:
                chain.append((seen["version"], reply.data["version"]))

        return edit

    for outcome in run_repeatedly([editor(number) for number in range(16)], times=4):
        outcome.get()
    following = dict(chain)
    assert len(following) == len(chain), "two changes replaced the same version"
    version, steps = start, 0
    while version in following:
        version, steps = following[version], steps + 1
    assert (version, steps) == (bench.item.version, len(chain))
    stage.check_invariants()


@faults()
def test_under_every_fault_a_change_never_conflicts_with_itself(world, stage):
    bench = Bench(world, stage)
    case = yield bench.patches("accepted")
    check_first(case, 200)
    again = case.second.get()
    assert (again.status, again.data["status"], again.data["version"]) == (200, "accepted", bench.item.version)
    assert bench.listed("accepted") == [bench.item_id]


@faults(8)
def test_under_every_fault_a_publication_creates_one_item(world):
    company = world.company()
    found = world.discovery(company)
    case = yield lambda: publish_finding(found)
    case.second.get()
    assert [it.item_id for it in inbox.list_items(company.organization_id, "open", 10, None).items] == [found.item_id]


@faults()
def test_a_detection_redelivered_after_any_fault_is_stored_once(world, stage):
    bench = Bench(world, stage, None)
    case = yield bench.detects()
    if case.fault.kind in HIDDEN:
        case.first.get()
    case.second.get()
    bench.check([0], None, "open")
    assert bench.vendor()["revision"] == 1

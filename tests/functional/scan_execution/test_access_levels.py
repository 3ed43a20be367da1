"""Locked scans announce their findings in one item, and previews show what the last one did, until an unlock."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.findings import inbox
from controlplane.platform.queues.messages import PublishScan
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.scans.items import ScanItem
from tests.functional.scan_execution.repeated_scans import BING, GA, HOTJAR, USER, Audit, page
from tests.support.api import Api
from tests.support.browser import Browser, text_of
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World, table_dump

A = {"a.html": page(GA)}


@pytest.fixture
def unlock(audit: Audit, api: Api, company: Company):
    def pay_and_publish(scan: ScanItem) -> None:
        billing.add_credits(company.organization_id, 50)
        reply = api.post(f"/v1/code-audit/scans/{scan.scan_id}/unlock", company.owner.token)
        assert reply.data == {"status": "unlocked"}
        audit.deliver(PublishScan(scan_id=scan.scan_id))

    return pay_and_publish


def test_a_locked_scan_puts_one_item_into_the_inbox_that_reveals_nothing(audit, api, company):
    audit.scan(A)
    scan = audit.scan({"a.html": page(GA, HOTJAR), "b.html": page(BING)}, "locked")
    (notice,) = [item for item in audit.items() if item.locked_findings]
    path = f"/v1/inbox/{notice.item_id}"
    shown = api.get(path, company.owner.token).data
    assert shown["title"] == f"2 new findings in {scan.repository_name} are locked"
    assert shown["summary"] == (
        "A scan of main found 2 new findings. Unlocking the report costs 50 credits. "
        "An owner of the organization can unlock it."
    )
    assert shown["lockedFindings"] == {"scanId": scan.scan_id, "newCount": 2, "unlockCredits": 50}
    assert (shown["source"], shown["status"], shown["priority"]) == ("code-audit", "open", None)
    assert (shown["evidence"], shown["description"], shown["remediation"]) == ([], None, None)
    stored = str(table.get(keys.inbox_item(*notice.item_id.location)))
    for secret in ("otjar", "bat.", "Bing", "Microsoft", "html", "P1", "high", "track"):
        assert secret not in stored, secret
    reply = api.post(f"{path}/github-issue", company.owner.token)
    assert (reply.status, reply.code) == (409, "CONFLICT")
    assert reply.error["details"] == {"reason": "findings_locked", "scanId": scan.scan_id}


def test_a_locked_scan_of_the_same_repository_updates_that_item(audit):
    audit.scan({}, "locked")
    assert audit.items() == []
    audit.scan(A, "locked")
    (first,) = audit.items()
    assert first.title == f"1 new finding in {audit.repository.name} is locked"
    scan = audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
    (second,) = audit.items()
    assert (second.item_id, second.locked_findings is not None) == (first.item_id, True)
    assert (second.locked_findings.scan_id, second.locked_findings.new_count) == (scan.scan_id, 1)
    audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
    (third,) = audit.items()
    assert (third.status, third.resolved_by is not None) == ("resolved", True)  # it has nothing new
    audit.scan({"a.html": page(GA, HOTJAR, BING)}, "locked")
    assert [item.status for item in audit.items()] == ["open"]


def test_an_item_that_a_person_dismissed_stays_dismissed(story):
    more = {"a.html": page(GA, HOTJAR)}
    story((A, "locked"), "dismissed", (more, "locked"), more, title="locked")
    assert story.statuses == ["open", "dismissed", "dismissed", "dismissed"]


def test_findings_are_no_longer_announced_after_a_full_scan(audit):
    audit.scan(A, "locked")
    audit.scan(A)
    assert (audit.item("locked").status, audit.item().status) == ("resolved", "open")


@pytest.mark.parametrize("accepted", [False, True])
def test_an_unlocked_scan_publishes_its_findings_once_and_resolves_the_item(accepted, audit, unlock):
    scan = audit.scan(A, "locked")
    if accepted:
        audit.decide("accepted", "locked")
    unlock(scan)
    notice = audit.item("locked")
    assert (notice.status, audit.item().status) == ("resolved", "open")
    assert notice.status_reason == f"The findings of scan {scan.scan_id} were unlocked."
    before = table_dump()
    audit.deliver(PublishScan(scan_id=scan.scan_id))
    assert table_dump() == before


def test_a_scan_that_is_unlocked_late_raises_nothing_that_is_fixed(audit, unlock):
    scan = audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
    later = audit.scan({"a.html": page(HOTJAR, BING)}, "locked")
    unlock(scan)
    fixed = audit.item()
    assert (fixed.status, fixed.resolved_by) == ("resolved", later.scan_id)
    assert audit.item("Hotjar").status == "open"
    assert audit.item("locked").status == "open"  # it announces the later scan
    audit.scan({"a.html": page(GA, HOTJAR)})
    assert audit.item().status == "open"


# More urgent than the others.
URGENT = {"u.html": page(HOTJAR)}


def pages(names: str) -> dict[str, str]:
    """Returns pages that each load a tracker of their own."""
    return {f"{it}.html": page(GA.replace("G-1", f"G-{it}")) for it in names}


class Previews(Audit):
    """The scans of a repository on the free plan, from the first one on."""

    def __init__(self, world: World, api: Api, sqs: FakeSqs, advance: Callable[[float], None]) -> None:
        self.api, self.company = api, world.company("free")
        super().__init__(world.connected_repository(self.company), sqs, advance, is_scanned=False)

    def preview(self, files: dict[str, str]) -> ScanItem:
        self.last = self.scan(files, "free-preview")
        return self.last

    def get(self, path: str = "/issues") -> Any:
        return self.api.get(f"/v1/code-audit/scans/{self.last.scan_id}{path}", self.company.owner.token).data

    def paths(self) -> list[str]:
        """Returns the files of the visible findings without their endings. Checks their number and order."""
        shown = self.get()
        assert len(shown["issues"]) == min(3, len(shown["issues"]) + shown["lockedCount"])
        assert [it["priority"] for it in shown["issues"]] == sorted(it["priority"] for it in shown["issues"])
        return [it["location"]["path"].removesuffix(".html") for it in shown["issues"]]


@pytest.fixture
def previews(world, api, sqs, now):
    return Previews(world, api, sqs, now.advance)


def test_a_second_scan_of_the_same_commit_shows_the_same_findings_and_raises_nothing(previews):
    previews.preview(pages("abcdef"))
    before = previews.items()
    assert (previews.paths(), len(before)) == (["a", "b", "c"], 3)
    scan = previews.preview(pages("abcdef"))
    assert (scan.access, scan.unlock_credits, scan.locked_count) == ("free-preview", 50, 3)
    assert previews.paths() == ["a", "b", "c"]
    assert [it.item_id for it in previews.items()] == [it.item_id for it in before]


def test_those_that_are_left_stay_visible_and_the_most_urgent_follow_for_those_that_are_fixed(previews, world):
    previews.preview(pages("bcdefg"))
    # Neither a new finding of the same priority nor a more urgent one takes the place of one that was shown.
    hidden = previews.preview(pages("abcdefg") | URGENT)
    assert previews.paths() == ["b", "c", "d"]
    assert hidden.visible_priorities == {"P0": 0, "P1": 3}
    assert previews.item("locked").locked_findings.new_count == 2
    previews.preview(pages("acdefg") | URGENT)
    assert previews.paths() == ["u", "c", "d"]
    assert [it["location"]["path"] for it in previews.get("/diff")["fixed"]] == ["b.html"]
    browser = Browser(previews.api).signed_in(previews.company.owner.user_id)
    shown = text_of(browser.get(f"/organizations/{previews.company.slug}/scans/{previews.last.scan_id}"))
    assert "Fixed since the previous scan Google Analytics is loaded before consent b.html" in shown
    # All that were shown are fixed.
    previews.preview(pages("aefg"))
    assert previews.paths() == ["a", "e", "f"]
    # One that comes back was shown before.
    previews.preview(pages("abefg"))
    assert previews.paths() == ["a", "b", "e"]
    previews.preview({})
    assert (previews.paths(), previews.last.unlock_credits) == ([], 0)


def test_a_finding_that_moves_stays_visible(previews):
    files = pages("defg")
    previews.preview(files)
    moved = {"z.html": f"<!-- moved -->\n{files.pop('d.html')}", **files, **pages("abc")}
    previews.preview(moved)
    assert previews.paths() == ["e", "f", "z"]


@pytest.mark.parametrize("status", ["dismissed", "accepted"])
def test_a_decision_reveals_no_other_finding(status, previews):
    previews.preview(pages("abcdef"))
    for item in previews.items():
        inbox.change_status(item, status, item.version, USER, "because")
    previews.preview(pages("abcdef"))
    assert previews.paths() == ["a", "b", "c"]
    assert {it["status"] for it in previews.get()["issues"]} == {status}


def test_unlocking_shows_the_rest_most_urgent_first(previews):
    previews.preview(pages("abc"))
    previews.preview(pages("abcd") | URGENT)
    billing.add_credits(previews.company.organization_id, 50)
    path = f"/v1/code-audit/scans/{previews.last.scan_id}/unlock"
    assert previews.api.post(path, previews.company.owner.token).data == {"status": "unlocked"}
    previews.deliver(PublishScan(scan_id=previews.last.scan_id))
    shown = previews.get()
    assert [it["location"]["path"][0] for it in shown["issues"]] == ["u", "a", "b", "c", "d"]
    assert (len(previews.items()), previews.item("locked").status) == (6, "resolved")
    # The next commit's scan is a preview again.
    assert previews.preview(pages("abcde") | URGENT).access == "free-preview"
    assert previews.paths() == ["u", "a", "b"]
    assert previews.get()["lockedCount"] == 3

"""A scan resolves only what is gone, once, despite concurrent changes, lost leases, late publications, and crashes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from controlplane.code_host import repositories
from controlplane.findings import inbox
from controlplane.findings.items import InboxItem, Status
from controlplane.platform.table import leases
from controlplane.platform.table.leases import Lease
from controlplane.scans import execution, findings, reads
from controlplane.scans.history import list_history
from controlplane.scans.items import Access, Coverage, ScanItem
from openassent_analysis import Analysis, Finding, Location
from openassent_analysis.fingerprints import Fingerprints
from openassent_analysis.fixes import Project
from scan_execution.identities import Unread
from scan_execution.publication import publish_findings, publish_unlocked
from tests.races.faults import Kind
from tests.races.stage import RACE_TIME, Stage, faults, race
from tests.races.yields import only_writes
from tests.support.audits import lease_of, make_scan
from tests.support.world import World

type SetClock = Callable[[float], None]

# The kinds that leave incomplete work.
DEADLY = frozenset({Kind.CRASH, Kind.LOST})


def finding(code: str, path: str = "a.html") -> Finding:
    identity = Fingerprints(path).take("analytics-loaded", code)
    place = Location(path, 1, 1, 1, 9, code)
    texts = (f"{code} is loaded before consent", "Why", "trackers", "high", "P1")
    return Finding("analytics-loaded", *texts, place, "Fix it.", (), *identity)


class Shop:
    """A repository whose first scan found `first` and `second`. Each scan starts a minute after the last one."""

    def __init__(self, world: World, stage: Stage, set_clock: SetClock) -> None:
        self.api, self.set_clock, self.at = stage.api, set_clock, RACE_TIME
        set_clock(self.at)  # the thread's clock is where the run before has left it
        self.company = world.company()
        self.repository = world.connected_repository(self.company)
        self.summary = f"1 new finding in {self.repository.name}"
        make_scan(self.repository)
        self.completes(self.scan(), finding("first"), finding("second"))

    def wait(self, seconds: float) -> None:
        self.at += seconds
        self.set_clock(self.at)

    def scan(self, access: Access = "full") -> ScanItem:
        self.wait(60)
        repository = repositories.get_repository(self.repository.repository_id)
        return make_scan(repository, status="running", access=access)

    def publishes(self, scan: ScanItem, *found: Finding, lease: Lease | None = None) -> None:
        """Runs the last stage of the scan, and completes it."""
        self.set_clock(self.at + 30)
        lease = lease or lease_of(scan)
        published = publish_findings(scan, lease, Analysis(list(found)), Unread(), Project())
        assert published.issue_count is not None
        execution.complete_scan(published, lease, len(found), published.issue_count, Coverage(1, 1, {}))

    def completes(self, scan: ScanItem, *found: Finding) -> ScanItem:
        self.publishes(scan, *found)
        return reads.get_scan(scan.scan_id)

    def unlocked(self, *found: Finding) -> ScanItem:
        """Completes a locked scan. Returns it as it is once it is unlocked."""
        return replace(self.completes(self.scan("locked"), *found), access="full")

    def takes_over(self, scan: ScanItem) -> Lease:
        """Acquires the scan for another worker, once the first one's lease has expired."""
        self.set_clock(self.at + 421)
        lease, _ = execution.acquire_scan(scan.scan_id, 420)
        return lease

    def item(self, code: str) -> InboxItem:
        listed = inbox.list_items(self.company.organization_id, None, 100, None).items
        (found,) = [item for item in listed if item.title.startswith(code)]
        return inbox.get_item(found.item_id)

    def statuses(self) -> dict[str, Status]:
        listed = inbox.list_items(self.company.organization_id, None, 100, None).items
        return {item.title.partition(" is")[0]: item.status for item in listed}


@pytest.fixture
def fresh(stage: Stage, thread_clock: SetClock) -> Callable[[World], Shop]:
    return lambda world: Shop(world, stage, thread_clock)


@race(ends={"dismissed", "resolved"})
def test_a_person_s_change_and_a_resolution_never_overwrite_each_other(world, fresh):
    shop = fresh(world)
    scan, item = shop.scan(), shop.item("first")
    body = {"status": "dismissed", "version": item.version}
    change = lambda: shop.api.patch(f"/v1/inbox/{item.item_id}", shop.company.owner.token, json_body=body)  # noqa: E731
    reply, _ = yield [change, lambda: shop.publishes(scan, finding("second"))]
    now = shop.item("first")
    assert now.status == ("dismissed" if reply.status == 200 else "resolved")
    assert now.resolved_by == (None if reply.status == 200 else scan.scan_id)
    known = list_history(shop.repository.repository_id)[finding("first").fingerprint]
    assert known.gone is not None
    assert known.unsettled is (now.status == "dismissed")
    return now.status


@race(leases.LeaseLost, leases.Finished)
def test_a_worker_that_lost_its_lease_resolves_nothing(world, fresh):
    """The new worker finds what the late one didn't, such as a file that the late one had no time for."""
    shop = fresh(world)
    scan = shop.scan("locked")
    lease = lease_of(scan)
    take_over = lambda: shop.publishes(scan, finding("first"), finding("second"), lease=shop.takes_over(scan))  # noqa: E731
    late, taken = yield [lambda: shop.publishes(scan, finding("second"), lease=lease), take_over]
    assert not isinstance(late, leases.Finished)
    assert not isinstance(taken, leases.LeaseLost)
    assert shop.statuses() == {"first": "open" if late else "resolved", "second": "open"}


@race()
def test_a_late_publication_never_opens_what_a_later_scan_found_fixed(world, fresh):
    shop = fresh(world)
    unlocked = shop.unlocked(finding("first"), finding("second"), finding("third"))
    scan = shop.scan("locked")
    acts = [lambda: publish_unlocked(unlocked), lambda: shop.publishes(scan, finding("first"), finding("second"))]
    yield acts
    statuses = shop.statuses()
    assert (statuses["first"], statuses["second"], statuses["third"]) == ("open", "open", "resolved")


@race()
def test_two_deliveries_of_a_publication_publish_once(world, fresh):
    shop = fresh(world)
    unlocked = shop.unlocked(finding("second"), finding("third"))
    yield [lambda: publish_unlocked(unlocked)] * 2
    assert shop.statuses() == {"first": "resolved", "second": "open", "third": "open", shop.summary: "resolved"}


@pytest.mark.parametrize("access", ["full", "locked"])
@faults(kinds=DEADLY, breaks=only_writes)
def test_a_crash_at_any_step_leads_to_the_same_end(world, fresh, access):
    """`first` is fixed, `second` moves to another file, `third` is new, and `fourth` comes back."""
    shop = fresh(world)
    shop.completes(shop.scan(), finding("first"), finding("second"), finding("fourth"))
    shop.completes(shop.scan(), finding("first"), finding("second"))
    assert shop.item("fourth").status == "resolved"
    moved = shop.item("second")
    scan = shop.scan(access)
    found = [finding("second", "lib/b.html"), finding("third"), finding("fourth")]

    def again() -> None:
        if reads.get_scan(scan.scan_id).status == "running":
            shop.publishes(scan, *found, lease=shop.takes_over(scan))

    case = yield lambda: shop.publishes(scan, *found), again
    case.second.get()
    new = "third" if access == "full" else shop.summary
    assert shop.statuses() == {"first": "resolved", "second": "open", "fourth": "open", new: "open"}
    item = shop.item("second")
    assert item.item_id == moved.item_id
    assert item.evidence[0].path == ("lib/b.html" if access == "full" else "a.html")
    history = list_history(shop.repository.repository_id)
    assert [known.fingerprint for known in history.values() if known.gone] == [finding("first").fingerprint]
    assert [known.unsettled for known in history.values()] == [False] * 4
    attempt = reads.get_scan(scan.scan_id).findings_attempt
    assert len(findings.list_findings(scan.scan_id, attempt, 500)) == 3


@faults(breaks=only_writes)
def test_every_fault_of_a_publication_is_recovered_by_its_redelivery(world, fresh):
    shop = fresh(world)
    unlocked = shop.unlocked(finding("second"), finding("third"))
    shop.completes(shop.scan("locked"), finding("third"), finding("fourth"))
    case = yield lambda: publish_unlocked(unlocked)
    case.second.get()
    assert shop.statuses() == {"first": "resolved", "second": "resolved", "third": "open", shop.summary: "open"}

"""The sweep opens, updates, and resolves advisories about packages of each repository's latest scans."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.code_host import repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.erasure.cleanup import SETTLED_AFTER_SECONDS
from controlplane.findings import inbox
from controlplane.findings.items import InboxItem, Status
from controlplane.platform.core import clock
from controlplane.platform.queues import comparisons
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from controlplane.projects import store as projects
from controlplane.scans.items import ScanItem
from controlplane.scans.reads import Inventory, UsedVendor, VendorPackage, stored_leg
from sweeper import advisories
from tests.functional.projects.builders import make_project
from tests.support.audits import make_scan
from tests.support.calls import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import Company, World

ENTRY: dict[str, Any] = {
    "id": "posthog-js-xss",
    "package": "posthog-js",
    "affected": ">=1.0.0 <1.57.2",
    "fixed": "1.57.2",
    "kind": "vulnerable",
    "priority": "P1",
    "title": "posthog-js before 1.57.2 allows cross-site scripting",
    "summary": "A page can be made to run foreign scripts.",
    "remediation": "Upgrade to 1.57.2.",
    "date": "2026-03-01",
    "source": "https://github.com/PostHog/posthog-js/security",
}

type Publish = Callable[..., None]
# What happens to a repository and its item, or the status that a person gives the item.
type Step = Callable[["Line"], object] | Status


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Publish]:
    """Returns a function that replaces the list by the entry with these fields. The list has the entry as it is."""

    def replace(**fields: Any) -> None:
        path = tmp_path / "advisories.yaml"
        path.write_text(yaml.safe_dump([{**ENTRY, **fields}]))
        monkeypatch.setattr(advisories, "LIST", path)
        advisories.advisories.cache_clear()

    replace()
    yield replace
    advisories.advisories.cache_clear()


class Line:
    """A repository, whose scans for the first linked project find one package, one minute after another."""

    def __init__(self, world: World, company: Company, publish: Publish, now: Any) -> None:
        self.company, self.publish, self._now = company, publish, now
        self.repository: RepositoryItem = world.connected_repository(company)
        self.projects = [self.repository.links[0].project_id]
        self.scans: list[str] = []

    def scan(
        self,
        newest: str | None = "1.50.0",
        name: str = "posthog-js",
        path: str = "web/package.json",
        *,
        truncated: bool = False,
        has_inventory: bool = True,
    ) -> ScanItem:
        self._now.advance(60)
        scan = make_scan(repositories.get_repository(self.repository.repository_id))
        package = VendorPackage(name, f"^{newest}", path, newest)
        vendors = (UsedVendor("posthog", "PostHog", "analytics", (package,)),)
        if has_inventory:
            table.put(stored_leg(scan.scan_id, Inventory(files=1, vendors=vendors, truncated=truncated)), PREPARED)
        self.scans.append(scan.scan_id)
        return scan

    def decide(self, status: Status) -> None:
        self._now.advance(60)
        (item,) = items(self.company)
        inbox.change_status(item, status, item.version, self.company.owner.user_id, "We don't use that part.")

    def link_first(self) -> None:
        """Links a new project and makes it the one that is scanned. The former one is a link behind it."""
        repository_id, former = self.repository.repository_id, self.projects[0]
        self.projects.append(make_project(self.company).project_id)
        repositories.link_project(repository_id, Link(self.projects[1], None, None, False))
        repositories.unlink_project(repository_id, former)
        repositories.link_project(repository_id, Link(former, None, None, False))

    def unlink(self, number: int) -> None:
        repositories.unlink_project(self.repository.repository_id, self.projects[number])

    def seen(self) -> list[str]:
        """Returns the statuses of the items, which say if it is the item of the second project."""
        return [it.status + " there" * (it.project_id != self.projects[0]) for it in items(self.company)]


@pytest.fixture
def line(publish: Publish, world: World, company: Company, now: Any) -> Line:
    return Line(world, company, publish, now)


def items(company: Company) -> list[InboxItem]:
    return inbox.list_items(company.organization_id, None, 50, None).items


def stored(repository: RepositoryItem) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Returns the latest scans of the repository, and what makes it due."""
    latest = table.query(keys.latest_scans_pk(repository.repository_id), prefix=repository.repository_id).items
    return latest, table.get(keys.due_comparison(repository.repository_id))


def make_due(repository: RepositoryItem) -> None:
    table.put(comparisons.due_leg(repository.repository_id), PREPARED)


def scan(newest: str | None = "1.50.0", **options: Any) -> Step:
    return lambda line: line.scan(newest, **options)


def publish_entry(**fields: Any) -> Step:
    return lambda line: line.publish(**fields)


def unlink(number: int) -> Step:
    return lambda line: line.unlink(number)


FOUND = (scan(), ["open"])
# Steps, each followed by a sweep, and the items then.
STORIES: dict[str, list[tuple[Step, list[str]]]] = {
    "a version after the range": [(scan("1.57.2"), [])],
    "a range that allows later versions": [(scan("1.x"), [])],
    "an unknown version": [(scan(None), [])],
    "another package": [(scan(name="posthog"), [])],
    "an unknown version if every version is affected": [
        (lambda line: (line.publish(affected="*", fixed=None), line.scan(None)), ["open"]),
    ],
    "fixed and back": [FOUND, (scan("1.57.2"), ["resolved"]), (scan(), ["open"])],
    "an entry that is withdrawn": [FOUND, (publish_entry(withdrawn=True), ["resolved"])],
    "an entry that is narrowed": [FOUND, (publish_entry(affected="<1.50.0"), ["resolved"])],
    "dismissed until a new edition": [
        FOUND,
        ("dismissed", ["dismissed"]),
        (scan(), ["dismissed"]),
        (publish_entry(title="Reworded"), ["dismissed"]),
        (publish_entry(title="Reworded", date="2026-03-02"), ["open"]),
    ],
    "resolved by a person until a scan that started later": [
        FOUND,
        ("resolved", ["resolved"]),
        (publish_entry(remediation="Upgrade to 1.60.0."), ["resolved"]),
        (scan(), ["open"]),
    ],
    "an inventory that isn't complete, and an entry that is withdrawn": [
        FOUND, (scan("1.57.2", truncated=True), ["open"]), (publish_entry(withdrawn=True), ["resolved"]),
    ],
    "no inventory, and an entry that is withdrawn": [
        FOUND, (scan(has_inventory=False), ["open"]), (publish_entry(withdrawn=True), ["resolved"]),
    ],
    "another project still has it": [FOUND, (Line.link_first, ["open"]), (scan("1.57.2"), ["open"])],
    "a person's resolution before the latest scan, which doesn't have it, though another project does": [
        FOUND, (Line.link_first, ["open"]), ("resolved", ["resolved"]), (scan("1.57.2"), ["open"]),
    ],
    "two projects that are unlinked": [
        FOUND, (Line.link_first, ["open"]), (scan(), ["open there"]), (unlink(1), ["open"]), (unlink(0), ["resolved"]),
    ],
    "the only project that has it is unlinked": [
        (scan("1.57.2"), []), (Line.link_first, []), (scan(), ["open there"]), (unlink(1), ["resolved there"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_an_item_follows_scans_the_list_links_and_people(name, sweep, line):
    for step, expected in STORIES[name]:
        line.decide(step) if isinstance(step, str) else step(line)
        assert sweep()["MatchedRepositories"] == (0 if isinstance(step, str) else 1)
        assert line.seen() == expected
    for it in items(line.company):
        item = inbox.get_item(it.item_id)
        assert (item.resolved_by in line.scans) is (item.status == "resolved")
        assert ("withdrawn" in (item.status_reason or "")) is ("withdrawn" in name)


def test_an_affected_version_opens_one_item_that_says_where_it_is_and_what_to_do(sweep, line, world, api):
    scan, token = line.scan(path="my app/#1?/package.json"), line.company.owner.token
    other = world.connected_repository(line.company)
    assert sweep()["MatchedRepositories"] == 1
    (item,) = api.get(f"/v1/inbox?repositoryId={scan.repository_id}", token).data
    assert api.get(f"/v1/inbox?repositoryId={other.repository_id}", token).data == []
    shown = api.get(f"/v1/inbox/{item['id']}", token).data
    named = ("title", "summary", "priority", "remediation")
    assert {it: shown[it] for it in named} == {it: ENTRY[it] for it in named}
    assert (shown["source"], shown["status"], shown["repositoryName"]) == ("advisory", "open", scan.repository_name)
    assert (shown["projectId"], shown["references"]) == (scan.project_id, [ENTRY["source"]])
    (evidence,) = shown["evidence"]
    assert evidence["description"] == "my app/#1?/package.json: posthog-js ^1.50.0, which is at most 1.50.0"
    assert evidence["url"] == f"{scan.repository_url}/blob/{scan.head_commit_sha}/my%20app/%231%3F/package.json"
    assert ">=1.0.0 <1.57.2 of posthog-js" in shown["description"]


def test_a_new_edition_updates_the_item_and_repeating_an_interrupted_match_changes_nothing(sweep, line):
    line.scan()
    assert [sweep()["MatchedRepositories"] for _ in range(2)] == [1, 0]
    line.publish(title="Upgrade now", date="2026-03-02", priority="P0")
    assert sweep()["MatchedRepositories"] == 1
    before = items(line.company)
    assert [(it.title, it.priority, it.status) for it in before] == [("Upgrade now", "P0", "open")]
    make_due(line.repository)
    assert sweep()["MatchedRepositories"] == 1
    assert items(line.company) == before


@pytest.mark.parametrize("is_late", [False, True])
def test_after_a_projects_deletion_the_item_is_of_the_other_one(sweep, line, now, is_late):
    former = line.scan()
    line.link_first()
    line.scan()
    sweep()
    assert line.seen() == ["open there"]
    before = table.get(keys.inbox_item(*items(line.company)[0].item_id.location))
    projects.delete_project(projects.get_project(line.projects[1]))
    sweep()
    if is_late:  # a comparison that began before the deletion
        table.put(Put(before or {}), PREPARED)
    now.advance(SETTLED_AFTER_SECONDS)
    for _ in range(2):
        sweep()
    assert line.seen() == ["open"]
    latest, due = stored(line.repository)
    assert ([it["scanId"] for it in latest], due) == ([former.scan_id], None)


def test_a_scan_that_is_completed_during_the_comparison_is_due(sweep, line, monkeypatch):
    line.scan()
    find_repository = repositories.find_repository

    def find(repository_id):
        monkeypatch.undo()
        make_due(line.repository)
        return find_repository(repository_id)

    monkeypatch.setattr(repositories, "find_repository", find)
    assert [sweep()["MatchedRepositories"] for _ in range(3)] == [1, 1, 0]


def test_a_sweep_reads_no_repository_that_is_not_due(sweep, line):
    line.scan()
    sweep()
    assert stored(line.repository)[1] is None
    with recorded_calls() as calls:
        sweep()
    assert not [it for it in calls if line.repository.repository_id in str(it.parameters)]
    assert not [it for it in calls if "LATESTSCANS" in str(it.parameters)]


@pytest.fixture
def six(line: Line, world: World, now: Any) -> Company:
    """Returns a company with six repositories whose scans have an affected version."""
    for it in (line, *(Line(world, line.company, line.publish, now) for _ in range(5))):
        it.scan()
    return line.company


def test_a_new_edition_makes_all_due_from_where_the_last_run_stopped_and_a_newer_one_from_the_start(
    sweep, six, publish, monkeypatch
):
    assert [sweep()["MatchedRepositories"] for _ in range(2)] == [6, 0]
    monkeypatch.setattr(advisories, "_PAGE", 1)
    publish(title="Upgrade now", date="2026-03-02")
    runs = [sweep()["MatchedRepositories"] for _ in range(6)]
    assert (max(runs), sum(runs), runs[-1]) == (len(keys.LATEST_SCANS_PKS), 6, 0)
    assert [it.title for it in items(six)] == ["Upgrade now"] * 6
    for title in ("Upgrade", "Upgrade today"):
        publish(title=title, date="2026-03-03")
        sweep()
    publish(title="Upgrade today", date="2026-03-04")
    for _ in range(6):
        sweep()
    assert [it.title for it in items(six)] == ["Upgrade today"] * 6


def test_a_run_out_of_time_is_continued_and_a_failed_repository_stops_no_other(sweep, six, monkeypatch):
    table.put_all([{**keys.due_comparison("rep_0")._asdict()}], PREPARED)
    ticks = iter(range(10_000))
    monkeypatch.setattr(clock, "monotonic_source", lambda: next(ticks) * 0.05)
    runs = [sweep()["MatchedRepositories"] for _ in range(12)]
    assert (sum(runs), len(items(six))) == (6, 6)


def test_a_disconnected_repository_leaves_nothing(sweep, line, now):
    line.scan()
    sweep()
    repositories.disconnect_repository(line.repository.repository_id)
    now.advance(SETTLED_AFTER_SECONDS)
    for _ in range(2):
        sweep()
        now.advance(SETTLED_AFTER_SECONDS)
    assert (items(line.company), stored(line.repository)) == ([], ([], None))

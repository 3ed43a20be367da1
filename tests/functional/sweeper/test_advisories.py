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
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.queues import comparisons
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Put, table
from controlplane.projects import store as projects
from controlplane.scans.items import ScanItem
from controlplane.scans.reads import Inventory, UsedVendor, VendorPackage, stored_leg
from sweeper import advisories
from tests.functional.projects.builders import make_project
from tests.support.audits import make_scan
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import Company

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


@pytest.fixture
def repository(publish, world, company: Company) -> RepositoryItem:
    return world.connected_repository(company)


def scanned(
    repository: RepositoryItem,
    newest: str | None = "1.50.0",
    name: str = "posthog-js",
    path: str = "web/package.json",
    *,
    truncated: bool = False,
) -> ScanItem:
    """Completes a scan for the first linked project that finds the package with that newest version."""
    scan = make_scan(repository)
    package = VendorPackage(name, f"^{newest}", path, newest)
    vendors = (UsedVendor("posthog", "PostHog", "analytics", (package,)),)
    table.put(stored_leg(scan.scan_id, Inventory(files=1, vendors=vendors, truncated=truncated)), PREPARED)
    return scan


def items(company: Company) -> list[InboxItem]:
    return inbox.list_items(company.organization_id, None, 50, None).items


def link_first(repository: RepositoryItem, company: Company) -> ProjectId:
    """Links a new project and makes it the one that is scanned. The former ones are links behind it."""
    project_id = make_project(company).project_id
    linked = repositories.link_project(repository.repository_id, Link(project_id, None, None, False))
    links = [link.project_id for link in linked.links if link.project_id != project_id]
    for it in links:
        repositories.unlink_project(repository.repository_id, ProjectId.stored(it))
    for it in links:
        repositories.link_project(repository.repository_id, Link(it, None, None, False))
    return project_id


def stored(repository: RepositoryItem) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Returns the latest scans of the repository, and what makes it due."""
    latest = table.query(keys.latest_scans_pk(repository.repository_id), prefix=repository.repository_id).items
    return latest, table.get(keys.due_comparison(repository.repository_id))


def make_due(repository: RepositoryItem) -> None:
    table.put(comparisons.due_leg(repository.repository_id), PREPARED)


def decide(company: Company, status: Status) -> None:
    (item,) = items(company)
    inbox.change_status(item, status, item.version, company.owner.user_id, "We don't use that part.")


def test_an_affected_version_opens_one_item_that_says_where_it_is_and_what_to_do(sweep, company, repository, api):
    scan = scanned(repository, path="my app/#1?/package.json")
    assert sweep()["MatchedRepositories"] == 1
    (item,) = items(company)
    shown = api.get(f"/v1/inbox/{item.item_id}", company.owner.token).data
    named = ("title", "summary", "priority", "remediation")
    assert {it: shown[it] for it in named} == {it: ENTRY[it] for it in named}
    assert (shown["source"], shown["status"], shown["repositoryName"]) == ("advisory", "open", scan.repository_name)
    assert (shown["projectId"], shown["references"]) == (scan.project_id, [ENTRY["source"]])
    (evidence,) = shown["evidence"]
    assert evidence["description"] == "my app/#1?/package.json: posthog-js ^1.50.0, which is at most 1.50.0"
    assert evidence["url"] == f"{scan.repository_url}/blob/{scan.head_commit_sha}/my%20app/%231%3F/package.json"
    assert ">=1.0.0 <1.57.2 of posthog-js" in shown["description"]


def test_a_filter_by_repository_finds_it_and_no_other_repositorys(sweep, company, repository, world, api):
    scanned(repository)
    other = world.connected_repository(company)
    sweep()
    found = [
        len(api.get(f"/v1/inbox?repositoryId={it.repository_id}", company.owner.token).data)
        for it in (repository, other)
    ]
    assert found == [1, 0]


@pytest.mark.parametrize(
    ("newest", "name"), [("1.57.2", "posthog-js"), ("1.x", "posthog-js"), (None, "posthog-js"), ("1.50.0", "posthog")]
)
def test_a_version_or_package_that_is_not_affected_opens_nothing(sweep, company, repository, newest, name):
    scanned(repository, newest, name)
    assert sweep()["MatchedRepositories"] == 1
    assert items(company) == []


def test_an_unknown_version_is_affected_if_every_version_is(sweep, company, repository, publish):
    publish(affected="*", fixed=None)
    scanned(repository, None)
    sweep()
    assert [it.status for it in items(company)] == ["open"]


def test_a_repository_is_matched_once_and_repeating_an_interrupted_match_changes_nothing(sweep, company, repository):
    scanned(repository)
    assert [sweep()["MatchedRepositories"] for _ in range(2)] == [1, 0]
    before = items(company)
    make_due(repository)
    assert sweep()["MatchedRepositories"] == 1
    assert items(company) == before


def test_the_next_scan_without_an_affected_version_resolves_it_and_a_later_one_reopens_it(
    sweep, company, repository, now
):
    statuses = []
    for newest in ("1.50.0", "1.57.2", "1.50.0"):
        now.advance(60)
        scan = scanned(repository, newest)
        sweep()
        (item,) = items(company)
        statuses.append((item.status, inbox.get_item(item.item_id).resolved_by == scan.scan_id))
    assert statuses == [("open", False), ("resolved", True), ("open", False)]


def test_a_new_edition_updates_the_item_without_another_scan(sweep, company, repository, publish):
    scanned(repository)
    sweep()
    publish(title="Upgrade now", date="2026-03-02", priority="P0")
    assert sweep()["MatchedRepositories"] == 1
    assert [(it.title, it.priority, it.status) for it in items(company)] == [("Upgrade now", "P0", "open")]


@pytest.mark.parametrize("change", [{"withdrawn": True}, {"affected": "<1.50.0"}])
def test_a_withdrawn_or_narrowed_entry_resolves_it_without_another_scan(sweep, company, repository, publish, change):
    scanned(repository)
    sweep()
    publish(**change)
    sweep()
    (item,) = items(company)
    assert item.status == "resolved"
    assert ("withdrawn" in (inbox.get_item(item.item_id).status_reason or "")) is ("withdrawn" in change)


def test_a_dismissal_holds_for_other_scans_and_texts_and_ends_with_a_new_edition(
    sweep, company, repository, publish, now
):
    scanned(repository)
    sweep()
    decide(company, "dismissed")
    seen = []
    for fields in ({}, {"title": "Reworded"}, {"title": "Reworded", "date": "2026-03-02"}):
        now.advance(60)
        scanned(repository)
        publish(**fields)
        sweep()
        seen.append([(it.title, it.status) for it in items(company)])
    assert seen == [[(ENTRY["title"], "dismissed")], [("Reworded", "dismissed")], [("Reworded", "open")]]


def test_a_persons_resolution_holds_until_a_scan_that_started_later(sweep, company, repository, publish, now):
    scanned(repository)
    sweep()
    now.advance(60)
    decide(company, "resolved")
    publish(remediation="Upgrade to 1.60.0.")
    sweep()
    assert [it.status for it in items(company)] == ["resolved"]
    now.advance(60)
    scanned(repository)
    sweep()
    assert [it.status for it in items(company)] == ["open"]


def test_a_version_that_another_project_still_has_keeps_it_open(sweep, company, repository, now):
    scanned(repository)
    link_first(repository, company)
    now.advance(60)
    scanned(repository, "1.57.2")
    assert sweep()["MatchedRepositories"] == 1
    assert [it.status for it in items(company)] == ["open"]


def test_a_new_edition_counts_from_the_latest_scan_also_if_that_one_has_no_affected_version(
    sweep, company, repository, publish, now
):
    first = scanned(repository)
    sweep()
    link_first(repository, company)
    now.advance(60)
    decide(company, "resolved")
    now.advance(60)
    scanned(repository, "1.57.2")
    sweep()
    assert [(it.status, it.project_id) for it in items(company)] == [("open", first.project_id)]


@pytest.mark.parametrize("has_inventory", [True, False])
def test_an_incomplete_inventory_resolves_nothing_but_what_is_withdrawn(
    sweep, company, repository, publish, has_inventory
):
    scanned(repository)
    sweep()
    scan = scanned(repository, "1.57.2", truncated=True)
    if not has_inventory:
        table.delete(Delete(keys.scan_inventory(scan.scan_id)), PREPARED)
    assert sweep()["MatchedRepositories"] == 1
    assert [it.status for it in items(company)] == ["open"]
    publish(withdrawn=True)
    sweep()
    assert [it.status for it in items(company)] == ["resolved"]


def test_the_item_of_an_unlinked_project_is_of_the_other_one_or_resolved(sweep, company, repository, now):
    former = scanned(repository)
    now.advance(60)
    other = link_first(repository, company)
    scanned(repository)
    sweep()
    seen = []
    for project_id in (other, former.project_id):
        seen.append([(it.project_id, it.status) for it in items(company)])
        repositories.unlink_project(repository.repository_id, ProjectId.stored(project_id))
        assert sweep()["MatchedRepositories"] == 1
    seen.append([(it.project_id, it.status) for it in items(company)])
    assert seen == [[(other, "open")], [(former.project_id, "open")], [(former.project_id, "resolved")]]


def test_an_unlinked_project_with_the_only_affected_version_keeps_nothing_open(sweep, company, repository, now):
    scanned(repository, "1.57.2")
    now.advance(60)
    other = link_first(repository, company)
    scanned(repository)
    sweep()
    repositories.unlink_project(repository.repository_id, other)
    sweep()
    assert [(it.project_id, it.status) for it in items(company)] == [(other, "resolved")]


@pytest.mark.parametrize("is_late", [False, True])
def test_after_a_projects_deletion_the_item_is_of_the_other_one(sweep, company, repository, now, is_late):
    former = scanned(repository)
    now.advance(60)
    project_id = link_first(repository, company)
    scan = scanned(repository)
    sweep()
    before = table.get(keys.inbox_item(*items(company)[0].item_id.location))
    projects.delete_project(projects.get_project(project_id))
    sweep()
    if is_late:  # a comparison that began before the deletion
        table.put(Put(before or {}), PREPARED)
    now.advance(SETTLED_AFTER_SECONDS)
    for _ in range(2):
        sweep()
    assert [(it.project_id, it.status) for it in items(company)] == [(former.project_id, "open")]
    latest, due = stored(repository)
    assert ([it["scanId"] for it in latest], due) == ([former.scan_id], None)
    assert scan.scan_id != former.scan_id


def test_a_scan_that_is_completed_during_the_comparison_is_due(sweep, company, repository, monkeypatch):
    scanned(repository)
    find_repository = repositories.find_repository

    def find(repository_id):
        monkeypatch.undo()
        make_due(repository)
        return find_repository(repository_id)

    monkeypatch.setattr(repositories, "find_repository", find)
    assert [sweep()["MatchedRepositories"] for _ in range(3)] == [1, 1, 0]


def test_a_sweep_reads_no_repository_that_is_not_due(sweep, repository):
    scanned(repository)
    sweep()
    assert stored(repository)[1] is None
    with recorded_calls() as calls:
        sweep()
    assert not [it for it in calls if repository.repository_id in str(it.parameters)]
    assert not [it for it in calls if "LATESTSCANS" in str(it.parameters)]


def test_a_new_edition_makes_all_due_from_where_the_last_run_stopped(sweep, company, world, publish, monkeypatch):
    every = [world.connected_repository(company) for _ in range(6)]
    for each in every:
        scanned(each)
    assert sweep()["MatchedRepositories"] == 6
    assert sweep()["MatchedRepositories"] == 0
    monkeypatch.setattr(advisories, "_PAGE", 1)
    publish(title="Upgrade now", date="2026-03-02")
    runs = [sweep()["MatchedRepositories"] for _ in range(6)]
    assert (max(runs), sum(runs), runs[-1]) == (len(keys.LATEST_SCANS_PKS), 6, 0)
    assert [it.title for it in items(company)] == ["Upgrade now"] * 6


def test_a_newer_edition_begins_from_the_start(sweep, company, world, publish, monkeypatch):
    for _ in range(6):
        scanned(world.connected_repository(company))
    sweep()
    monkeypatch.setattr(advisories, "_PAGE", 1)
    for title in ("Upgrade", "Upgrade now"):
        publish(title=title, date="2026-03-02")
        sweep()
    publish(title="Upgrade now", date="2026-03-03")
    for _ in range(6):
        sweep()
    assert [it.title for it in items(company)] == ["Upgrade now"] * 6


def test_a_run_out_of_time_is_continued_and_a_failed_repository_stops_no_other(
    sweep, company, world, repository, monkeypatch
):
    for each in (repository, *(world.connected_repository(company) for _ in range(5))):
        scanned(each)
    table.put_all([{**keys.due_comparison("rep_0")._asdict()}], PREPARED)
    ticks = iter(range(10_000))
    monkeypatch.setattr(clock, "monotonic_source", lambda: next(ticks) * 0.05)
    runs = [sweep()["MatchedRepositories"] for _ in range(12)]
    assert sum(runs) == 6
    assert len(items(company)) == 6


def test_a_disconnected_repository_leaves_nothing(sweep, company, repository, now):
    scanned(repository)
    sweep()
    repositories.disconnect_repository(repository.repository_id)
    now.advance(SETTLED_AFTER_SECONDS)
    for _ in range(2):
        sweep()
        now.advance(SETTLED_AFTER_SECONDS)
    assert (items(company), stored(repository)) == ([], ([], None))

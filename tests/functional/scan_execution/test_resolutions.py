"""Findings over several scans: resolved, reopened, moved, and compared with those of the scan before."""

from functools import partial

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.findings import inbox, publications
from controlplane.findings.items import Status
from controlplane.platform.core import clock
from controlplane.platform.core.ids import RepositoryId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Put, table
from controlplane.scans import findings, reads
from controlplane.scans.history import list_history
from controlplane.scans.items import ScanItem
from openassent_analysis.sandbox import Sandbox
from scan_execution import identities, publication
from tests.functional.projects.builders import make_project
from tests.functional.scan_execution.conftest import Step
from tests.functional.scan_execution.repeated_scans import BING, CONSENT, GA, HOTJAR, USER, found_by, page
from tests.support.audits import make_scan
from tests.support.outcomes import Aborted
from tests.support.table import PREPARED

A, B, NONE = {"a.html": page(GA)}, {"b.html": page(GA)}, dict[str, str]()

# The steps of a finding of Google Analytics, with its status after each.
STORIES: dict[str, list[tuple[Step, Status]]] = {
    "resolved, reopened, and resolved": [(A, "open"), (NONE, "resolved"), (A, "open"), (NONE, "resolved")],
    "dismissed": [(A, "open"), *((step, "dismissed") for step in ("dismissed", NONE, A, NONE))],
    "accepted": [(A, "open"), *((step, "accepted") for step in ("accepted", NONE, A, NONE))],
    "dismissed and reopened": [
        (A, "open"), ("dismissed", "dismissed"), (NONE, "dismissed"), ("open", "open"), (NONE, "resolved"),
    ],
    "reopened by a person": [(A, "open"), (NONE, "resolved"), ("open", "open"), (NONE, "open")],
    "resolved by a person": [(A, "open"), ("resolved", "resolved"), (A, "open")],
    "hidden": [(A, "open"), ((NONE, "locked"), "resolved"), ((A, "locked"), "open")],
    "moved": [*((files, "open") for files in (A, B, {"c.html": page(GA)}, A, B)), (NONE, "resolved")],
}  # fmt: skip


@pytest.mark.parametrize("told", STORIES.values(), ids=STORIES)
def test_a_finding_has_the_status_of_the_last_scan_or_decision(told, story):
    last = story(*(step for step, _ in told))
    assert story.statuses == [status for _, status in told]
    assert {it.status_reason for it in story.items if it.status in {"dismissed", "accepted"}} <= {"because"}
    assert last.resolved_by == (story.scan.scan_id if last.status == "resolved" else None)


def test_a_scan_opens_a_finding_again_whose_dismissal_is_over_also_if_it_doesnt_show_it(audit):
    for access in ("full", "locked"):
        audit.scan(A)
        item = audit.item()
        inbox.change_status(item, "dismissed", item.version, USER, None, until=clock.timestamp(clock.now() + 600))
        audit.scan(A, access)
        assert audit.item().status == "dismissed"
        for _ in range(5):
            audit.scan(A, access)
        assert audit.item().status == "open"


class TestAFixedFinding:
    def test_is_resolved_with_the_scan_as_the_reason(self, audit, api, company):
        audit.scan({"a.html": page(GA, HOTJAR)})
        second = audit.scan({"a.html": page(HOTJAR)})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "open"}
        shown = api.get(f"/v1/inbox/{audit.item().item_id}", company.owner.token).data
        assert shown["resolvedBy"] == {"scanId": second.scan_id}
        assert shown["statusReason"] == f"Scan {second.scan_id} no longer finds it."
        resolved = api.get("/v1/inbox?status=resolved", company.owner.token).data
        assert [item["id"] for item in resolved] == [audit.item().item_id]

    def test_reopens_without_the_reason_and_keeps_its_first_seen_time(self, audit, story):
        first = audit.scan(A)
        item = story(NONE, A)
        assert (item.status_reason, item.resolved_by) == (None, None)
        assert [change.status for change in item.history] == ["open", "resolved", "open"]
        (history,) = list_history(audit.repository.repository_id).values()
        assert (history.first_seen_at, history.gone) == (first.created_at, None)

    def test_is_resolved_in_a_repository_with_more_findings_than_a_scan_keeps(self, audit, monkeypatch):
        """The findings that aren't kept are still there, so they aren't resolved, and reopen if they come back."""
        everything = {"a.html": page(GA, HOTJAR, BING), "b.html": page(GA)}
        audit.scan(everything)
        monkeypatch.setattr(publication, "MOST_ISSUES", 1)
        scan = audit.scan({**everything, "a.html": page(GA, BING)})
        assert (scan.issue_count, scan.finding_count) == (1, 3)
        assert [item.title.partition(" is ")[0] for item in audit.items() if item.status != "open"] == ["Hotjar"]
        audit.scan(everything)
        assert [item.status for item in audit.items()] == ["open"] * 4

    def test_stays_open_if_its_file_was_not_read_or_not_analyzed(self, audit, monkeypatch):
        names = ("large.html", "minified.js", "link.html", "attack/abort.js", "kept.html", "long.html")
        tracker = "const s = document.createElement('script'); s.src = 'https://static.hotjar.com/c/hotjar-1.js';\n"
        audit.scan({name: page(GA) if name.endswith("html") else tracker for name in names})
        assert len(audit.items()) == 6
        monkeypatch.setitem(settings.__dict__, "scan_file_bytes", 1_200_000)
        monkeypatch.setattr("scan_execution.service.Sandbox", partial(Sandbox, entry="analysis_testing.hostile:start"))
        files = {
            "large.html": page(GA) * 9_000,
            "minified.js": tracker + "x" * 60_000,
            "attack/abort.js": tracker,
            "long.html": page(GA) + " " * 1_200_000,
        }
        scan = audit.scan(files)
        assert (scan.coverage.files, scan.coverage.analyzed_files) == (5, 1)
        open_paths = {item.evidence[0].path for item in audit.items() if item.status == "open"}
        assert open_paths == files.keys()

    def test_of_another_project_stays_open(self, audit, company):
        (web,) = audit.repository.links
        admin = make_project(company, "Admin")
        repository_id = audit.repository.repository_id
        repositories.link_project(repository_id, Link(web.project_id, None, "apps/web", False))
        consent = {f"apps/{name}/consent.js": CONSENT["src/consent.js"] for name in ("web", "admin")}
        audit.scan({**consent, "apps/web/a.html": page(GA), "apps/admin/b.html": page(HOTJAR)})
        _link_first(repository_id, Link(admin.project_id, "develop", "apps/admin", False))
        audit.scan({**consent, "apps/admin/b.html": page(HOTJAR)})
        assert audit.statuses() == {"Google Analytics": "open", "Hotjar": "open"}
        _link_first(repository_id, Link(web.project_id, None, None, False))
        audit.scan({"apps/admin/b.html": page()})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "open"}
        repositories.unlink_project(repository_id, admin.project_id)
        audit.scan(NONE)
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "resolved"}

    def test_about_the_whole_project_is_resolved_once_something_asks_for_consent(self, story):
        story({**A, "src/consent.js": "1"}, {**A, "large.html": page(GA) * 9_000}, title="never asks")
        assert story.statuses == ["open", "resolved"]


def _link_first(repository_id: RepositoryId, link: Link) -> None:
    """Links the project, as the first one, which `make_scan` scans."""
    repository = repositories.link_project(repository_id, link)
    links = sorted(repository.links, key=lambda it: it.project_id != link.project_id)
    stored = table.get(keys.repository(*repository_id.location)) or {}
    table.put(Put({**stored, "links": [to_map(it) for it in links]}), PREPARED)


class TestAMovedFinding:
    @pytest.mark.parametrize("decided", ["open", "dismissed", "accepted"])
    def test_stays_the_same_with_a_new_location(self, decided, audit):
        first = audit.scan({"src/a.html": page(GA)})
        before = audit.decide(decided)
        second = audit.scan({"lib/renamed.html": page(GA)})
        after = audit.item()
        assert (after.item_id, after.status, after.evidence[0].path) == (before.item_id, decided, "lib/renamed.html")
        (finding,) = found_by(second)
        assert finding.fingerprint == found_by(first)[0].fingerprint
        assert (finding.location.path, finding.first_seen_at) == ("lib/renamed.html", first.created_at)

    def test_shows_each_of_its_places_and_leaves_the_old_one_to_a_new_finding(self, audit, story):
        story(A, B, {"c.html": page(GA)}, A, "dismissed", B)
        assert [item.evidence[0].path[0] for item in story.items] == ["a", "b", "c", "a", "a", "b"]
        for _ in range(2):
            scan = audit.scan({**A, **B})
            by_path = {item.evidence[0].path: item.status for item in audit.items()}
            assert by_path == {"a.html": "open", "b.html": "dismissed"}
        assert len({finding.fingerprint for finding in found_by(scan)}) == 2

    @pytest.mark.parametrize("scans", [[{**A, **B}], [NONE, B]], ids=["a copy", "gone before"])
    def test_is_neither_a_copy_nor_one_that_was_gone_before(self, scans, audit):
        audit.scan(A)
        audit.decide("dismissed")
        for files in scans:
            audit.scan(files)
        assert sorted(item.status for item in audit.items()) == ["dismissed", "open"]

    def test_is_the_one_with_the_most_similar_path(self, audit):
        audit.scan({"web/a.html": page(GA), "web/b.html": page(GA)})
        before = {item.evidence[0].path: item.item_id for item in audit.items()}
        audit.scan({"app/b.html": page(GA), "app/a.html": page(GA)})
        after = {item.evidence[0].path: item.item_id for item in audit.items()}
        assert after == {"app/a.html": before["web/a.html"], "app/b.html": before["web/b.html"]}

    def test_in_a_locked_scan_is_recognized_without_showing_where_it_is(self, audit):
        audit.scan(A)
        before = audit.items()
        audit.scan(B, "locked")
        assert audit.items() == before


def titles(scan: ScanItem, *, new: bool) -> set[str]:
    return {finding.title.partition(" is ")[0] for finding in found_by(scan) if finding.is_new is new}


def test_new_fixed_and_remaining_findings_are_told_apart(audit):
    first = audit.scan({"a.html": page(GA, HOTJAR)})
    second = audit.scan({"moved.html": page(HOTJAR, BING)})
    compared = second.comparison
    assert (compared.base_scan_id, compared.new_count, compared.fixed_count) == (first.scan_id, 1, 1)
    assert titles(second, new=True) == {"Microsoft Advertising"}
    assert titles(second, new=False) == {"Hotjar"}
    (fixed,) = findings.find_items(second, compared.fixed).values()
    assert fixed.title.startswith("Google Analytics")
    assert sum((second.priority_counts or {}).values()) == second.issue_count == 2
    # A finding that comes back is new.
    assert titles(audit.scan({"a.html": page(GA)}), new=True) == {"Google Analytics"}


def test_a_retry_after_a_crash_finds_the_same_findings_new(audit, monkeypatch, now):
    """The interrupted attempt has already recorded them in the repository's history."""
    audit.scan({"a.html": page(GA)})
    scan = audit.start()
    publish, deaths = publications.publish_findings, [Aborted()]

    def die_once(*arguments, **options):
        if deaths:
            raise deaths.pop()
        return publish(*arguments, **options)

    monkeypatch.setattr(publications, "publish_findings", die_once)
    files = {"a.html": page(GA, HOTJAR)}
    with pytest.raises(Aborted):
        audit.run(scan, files)
    now.advance(3_600)  # the lease expires
    done = audit.run(scan, files)
    assert (titles(done, new=True), titles(done, new=False)) == ({"Hotjar"}, {"Google Analytics"})
    assert done.comparison.new_count == 1


def test_what_the_scan_before_left_out_isnt_new(audit, monkeypatch):
    """A scan keeps its most urgent findings only, but the history knows the others."""
    monkeypatch.setattr(identities, "MOST_ISSUES", 1)
    files = {"a.html": page(GA), "b.html": page(HOTJAR)}
    for most, found in ((1, {"a.html": page(GA)}), (2, files), (1, files), (2, files)):
        monkeypatch.setattr(publication, "MOST_ISSUES", most)
        last = audit.scan(found)
    assert titles(last, new=True) == set()


def test_findings_in_files_that_werent_read_arent_fixed(audit):
    audit.scan({"a.html": page(GA)})
    second = audit.scan({"a.html": page(GA) + "\0" * 10})
    assert (second.issue_count, second.comparison.fixed_count) == (0, 0)


def test_the_scan_before_is_the_projects_own_however_many_other_projects_have_had_since(
    company, repository, now, monkeypatch
):
    monkeypatch.setattr(reads, "_PAGE", 1)
    own, project_id = make_scan(repository), repository.links[0].project_id
    repositories.unlink_project(repository.repository_id, project_id)
    other = Link(make_project(company, "Other").project_id, None, None, False)
    linked = repositories.link_project(repository.repository_id, other)
    for _ in range(2):
        now.advance(1)
        make_scan(linked)
    found = reads.find_production_scan(repository.repository_id, project_id, completed=True)
    assert found.scan_id == own.scan_id

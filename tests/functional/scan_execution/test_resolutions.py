"""Findings over several scans: a fixed one is resolved, one that comes back reopens, and a moved one stays the same."""

from functools import partial

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.findings.status_history import Status
from controlplane.platform.core.ids import RepositoryId
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from controlplane.scans.history import list_history
from openassent_analysis.sandbox import Sandbox
from scan_execution import publication
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.repeated_scans import BING, CONSENT, GA, HOTJAR, Audit, found_by, page
from tests.support.table import PREPARED
from tests.support.world import Company


class TestAFixedFinding:
    def test_is_resolved_with_the_scan_as_the_reason(self, audit: Audit, api: Api, company: Company):
        audit.scan({"a.html": page(GA, HOTJAR)})
        second = audit.scan({"a.html": page(HOTJAR)})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "open"}
        shown = api.get(f"/v1/inbox/{audit.item().item_id}", company.owner.token).data
        assert shown["resolvedBy"] == {"scanId": second.scan_id}
        assert shown["statusReason"] == f"Scan {second.scan_id} no longer finds it."
        resolved = api.get("/v1/inbox?status=resolved", company.owner.token).data
        assert [item["id"] for item in resolved] == [audit.item().item_id]

    def test_is_resolved_if_its_file_was_deleted(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.scan({})
        assert audit.statuses() == {"Google Analytics": "resolved"}

    def test_reopens_if_it_comes_back(self, audit: Audit):
        first = audit.scan({"a.html": page(GA)})
        audit.scan({})
        audit.scan({"a.html": page(GA)})
        item = audit.item()
        assert (item.status, item.status_reason, item.resolved_by) == ("open", None, None)
        assert [change.status for change in item.history] == ["open", "resolved", "open"]
        (history,) = list_history(audit.repository.repository_id).values()
        assert (history.first_seen_at, history.gone) == (first.created_at, None)
        audit.scan({})
        assert audit.item().status == "resolved"

    @pytest.mark.parametrize("decided", ["dismissed", "accepted"])
    def test_keeps_the_decision_of_a_person(self, decided: Status, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide(decided)
        for files in ({}, {"a.html": page(GA)}, {}):
            audit.scan(files)
            assert (audit.item().status, audit.item().status_reason) == (decided, "because")

    def test_that_a_person_opens_again_is_resolved_by_the_next_scan(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide("dismissed")
        audit.scan({})
        audit.decide("open")
        scan = audit.scan({})
        assert (audit.item().status, audit.item().resolved_by) == ("resolved", scan.scan_id)

    def test_that_a_person_reopens_stays_open(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.scan({})
        audit.decide("open")
        audit.scan({})
        assert (audit.item().status, audit.item().resolved_by) == ("open", None)

    def test_resolved_by_a_person_reopens_when_it_is_found_after_that(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide("resolved")
        audit.scan({"a.html": page(GA)})
        assert audit.item().status == "open"

    def test_is_resolved_by_scans_that_hide_what_they_find(self, audit: Audit):
        audit.scan({"a.html": page(GA, HOTJAR)})
        audit.scan({"a.html": page(HOTJAR)}, "locked")
        assert audit.item("Google Analytics").status == "resolved"
        assert audit.item("Hotjar").status == "open"
        audit.scan({"a.html": page(GA, HOTJAR)}, "locked")
        assert audit.item("Google Analytics").status == "open"

    def test_is_resolved_in_a_repository_with_more_findings_than_a_scan_keeps(
        self, audit: Audit, monkeypatch: pytest.MonkeyPatch
    ):
        """The findings that aren't kept are still there, so they aren't resolved, and reopen if they come back."""
        everything = {"a.html": page(GA, HOTJAR, BING), "b.html": page(GA)}
        audit.scan(everything)
        items = {item.item_id for item in audit.items()}
        monkeypatch.setattr(publication, "MOST_ISSUES", 1)
        scan = audit.scan({**everything, "a.html": page(GA, BING)})
        assert (scan.issue_count, scan.finding_count) == (1, 3)
        assert {item.item_id for item in audit.items() if item.status == "open"} == items - {
            audit.item("Hotjar").item_id
        }
        audit.scan(everything)
        assert {item.status for item in audit.items()} == {"open"}

    def test_stays_open_if_its_file_has_become_too_large_to_be_read(
        self, audit: Audit, monkeypatch: pytest.MonkeyPatch
    ):
        audit.scan({"a.html": page(GA)})
        monkeypatch.setitem(settings.__dict__, "scan_file_bytes", 1_000)
        audit.scan({"a.html": page(GA) + " " * 1_000})
        assert audit.statuses() == {"Google Analytics": "open"}

    def test_stays_open_if_its_file_was_not_analyzed(self, audit: Audit, monkeypatch: pytest.MonkeyPatch):
        names = ("large.html", "minified.html", "link.html", "attack/abort.js", "kept.html")
        tracker = "const s = document.createElement('script'); s.src = 'https://static.hotjar.com/c/hotjar-1.js';\n"
        audit.scan({name: page(GA) if name.endswith("html") else tracker for name in names})
        assert len(audit.items()) == 5
        monkeypatch.setattr("scan_execution.service.Sandbox", partial(Sandbox, entry="tests.support.hostile:start"))
        files = {"large.html": page(GA) * 9_000, "minified.html": page(GA) + "x" * 60_000, "attack/abort.js": tracker}
        scan = audit.scan(files)
        assert scan.coverage is not None
        assert (scan.coverage.files, scan.coverage.analyzed_files) == (4, 1)
        open_paths = {item.evidence[0].path for item in audit.items() if item.status == "open"}
        assert open_paths == files.keys()

    def test_of_another_project_stays_open(self, audit: Audit, company: Company):
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
        audit.scan({})
        assert audit.statuses() == {"Google Analytics": "resolved", "Hotjar": "resolved"}

    def test_about_the_whole_project_is_resolved_once_something_asks_for_consent(self, audit: Audit):
        audit.scan({"a.html": page(GA), "src/consent.js": "1"})
        assert audit.item("never asks").status == "open"
        audit.scan({"a.html": page(GA), "large.html": page(GA) * 9_000})
        assert audit.item("never asks").status == "resolved"


def _link_first(repository_id: RepositoryId, link: Link) -> None:
    """Links the project, as the first one, which `make_scan` scans."""
    repository = repositories.link_project(repository_id, link)
    links = sorted(repository.links, key=lambda it: it.project_id != link.project_id)
    table.put(
        Put({**(table.get(keys.repository(*repository_id.location)) or {}), "links": [it.to_item() for it in links]}),
        PREPARED,
    )


class TestAMovedFinding:
    @pytest.mark.parametrize("decided", ["open", "dismissed", "accepted"])
    def test_stays_the_same_with_a_new_location(self, decided: Status, audit: Audit):
        first = audit.scan({"src/a.html": page(GA)})
        audit.decide(decided)
        before = audit.item()
        second = audit.scan({"lib/renamed.html": page(GA)})
        after = audit.item()
        assert (after.item_id, after.status) == (before.item_id, decided)
        assert after.evidence[0].path == "lib/renamed.html"
        (finding,) = found_by(second)
        assert finding.fingerprint == found_by(first)[0].fingerprint
        assert (finding.location.path, finding.first_seen_at) == ("lib/renamed.html", first.created_at)

    def test_stays_the_same_when_it_moves_on_and_back(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        for name in ("b.html", "c.html", "a.html", "b.html"):
            audit.scan({name: page(GA)})
            assert audit.statuses() == {"Google Analytics": "open"}
            assert audit.item().evidence[0].path == name
        audit.scan({})
        assert audit.item().status == "resolved"

    def test_leaves_its_old_place_to_a_new_finding(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide("dismissed")
        audit.scan({"b.html": page(GA)})
        audit.scan({"a.html": page(GA), "b.html": page(GA)})
        by_path = {item.evidence[0].path: item.status for item in audit.items()}
        assert by_path == {"a.html": "open", "b.html": "dismissed"}
        scan = audit.scan({"a.html": page(GA), "b.html": page(GA)})
        assert len({finding.fingerprint for finding in found_by(scan)}) == 2
        assert len(audit.items()) == 2

    def test_is_not_the_copy_of_one_that_stays(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide("dismissed")
        audit.scan({"a.html": page(GA), "b.html": page(GA)})
        assert sorted(item.status for item in audit.items()) == ["dismissed", "open"]

    def test_is_not_another_one_that_was_gone_before(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        audit.decide("dismissed")
        audit.scan({})
        audit.scan({"b.html": page(GA)})
        assert sorted(item.status for item in audit.items()) == ["dismissed", "open"]

    def test_is_the_one_with_the_most_similar_path(self, audit: Audit):
        audit.scan({"web/a.html": page(GA), "web/b.html": page(GA)})
        before = {item.evidence[0].path: item.item_id for item in audit.items()}
        audit.scan({"app/b.html": page(GA), "app/a.html": page(GA)})
        after = {item.evidence[0].path: item.item_id for item in audit.items()}
        assert after == {"app/a.html": before["web/a.html"], "app/b.html": before["web/b.html"]}

    def test_in_a_locked_scan_is_recognized_without_showing_where_it_is(self, audit: Audit):
        audit.scan({"a.html": page(GA)})
        before = audit.item()
        audit.scan({"b.html": page(GA)}, "locked")
        assert audit.items() == [before]

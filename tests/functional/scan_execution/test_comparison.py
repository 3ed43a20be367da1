"""How a scan of the production branch compares with the one before it, as the worker records it."""

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.findings import publications
from controlplane.scans import findings, reads
from controlplane.scans.items import ScanItem
from scan_execution import identities, publication
from tests.functional.projects.builders import make_project
from tests.functional.scan_execution.repeated_scans import BING, GA, HOTJAR, found_by, page
from tests.support.audits import make_scan
from tests.support.outcomes import Aborted


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

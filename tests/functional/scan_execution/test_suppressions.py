"""Findings that a comment or the repository's `.assent.yml` suppresses are counted, and aren't in the inbox."""

from dataclasses import replace

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.scans import findings, sarif
from controlplane.scans.history import list_history
from tests.functional.scan_execution.repeated_scans import GA, HOTJAR, found_by, page

_SILENT = "<!-- assent-ignore: analytics-loaded -- Only counts, see DPO-12 -->\n"
_OWN = '<script src="https://metrics.acme-example.io/a.js"></script>\n'
_VENDORS = (
    "vendors:\n- {id: acme-metrics, name: Acme Metrics, category: analytics, domains: [metrics.acme-example.io]}\n"
)


def settings(text):
    return {".assent.yml": text}


class TestAComment:
    def test_suppresses_a_finding_which_is_counted_unless_it_has_no_reason(self, audit):
        unreasoned = "<!-- assent-ignore: session-replay-loaded -->\n"
        done = audit.scan({"a.html": page(_SILENT + GA, unreasoned + HOTJAR)})
        assert (done.issue_count, done.finding_count) == (1, 1)
        assert audit.statuses() == {"Hotjar": "open"}
        assert done.coverage.suppressed == {"comment": {"analytics-loaded": 1}}
        [note] = done.coverage.notes
        assert note.startswith("a.html, line 5: An assent-ignore comment has no effect without a reason.")

    def test_resolves_the_open_item_with_its_reason_which_is_no_fix_and_removing_it_opens_the_item(
        self, audit, story, repository
    ):
        loud, silent = {"a.html": page(GA)}, {"a.html": page(_SILENT + GA)}
        item = story(loud, silent)
        assert item.status_reason == "A comment in the code suppresses it: Only counts, see DPO-12"
        assert item.resolved_by == story.scan.scan_id
        assert story.scan.comparison.fixed_count == 0
        [known] = list_history(repository.repository_id).values()
        assert (known.gone.scan_id, known.unsettled) == (story.scan.scan_id, False)
        story(silent, loud, silent)
        assert story.statuses == ["open", "resolved", "resolved", "open", "resolved"]
        # It keeps a person's decision.
        assert story(loud, "dismissed", silent).status == "dismissed"

    def test_suppresses_one_of_two_findings_with_the_same_code(self, audit):
        audit.scan({"a.html": page(GA), "b.html": page(GA)})
        audit.scan({"a.html": page(_SILENT + GA), "b.html": page(GA)})
        assert {(it.path, it.status) for it in audit.items()} == {("a.html", "resolved"), ("b.html", "open")}


class TestTheRepositorysSettings:
    def test_accept_a_vendor_and_turn_a_rule_off(self, audit):
        text = "accept: [{vendor: hotjar, reason: Only for staff}]\nseverity: {analytics-loaded: off}\n"
        audit.scan({"a.html": page(GA, HOTJAR)})
        done = audit.scan({**settings(text), "a.html": page(GA, HOTJAR)})
        assert done.issue_count == 0
        assert done.coverage.suppressed == {"vendor": {"session-replay-loaded": 1}, "rule": {"analytics-loaded": 1}}
        assert {it.title.partition(" is ")[0]: it.status_reason for it in audit.items()} == {
            "Google Analytics": ".assent.yml suppresses it: The rule is off.",
            "Hotjar": ".assent.yml accepts the vendor: Only for staff",
        }

    def test_its_findings_are_in_the_file_of_results_with_their_reasons(self, audit):
        text = "accept: [{vendor: hotjar, reason: Only for staff}]\n"
        done = audit.scan({**settings(text), "a.html": page(_SILENT + GA, HOTJAR), "b.html": page(GA)})
        shown = findings.list_visible_issues(done, findings.read_ahead(done.scan_id))
        [run] = sarif.to_sarif(done, shown)["runs"]
        assert {
            (it["ruleId"], *(why["justification"] for why in it.get("suppressions", ()))) for it in run["results"]
        } == {
            ("analytics-loaded",),
            ("analytics-loaded", "Only counts, see DPO-12"),
            ("session-replay-loaded", "Only for staff"),
        }
        assert {it["kind"] for result in run["results"] for it in result.get("suppressions", ())} == {
            "inSource",
            "external",
        }
        assert not findings.list_suppressed(replace(done, access="locked", issue_count=9))

    def test_name_vendors_of_ones_own(self, audit, repository):
        done = audit.scan({**settings(_VENDORS), "a.html": page(_OWN)})
        [finding] = found_by(done)
        assert [(it.id, it.name) for it in finding.vendors] == [("acme-metrics", "Acme Metrics")]
        assert audit.statuses() == {"Acme Metrics": "open"}
        assert "acme-metrics" not in {
            vendor.id for it in found_by(audit.scan({"a.html": page(_OWN)})) for vendor in it.vendors
        }

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("severity: {no-such-rule: off}\n", ", line 1: severity.no-such-rule: there is no such rule."),
            ("exclude: [", ", line 2: it isn't valid YAML."),
            ("- " * 30_000, ""),
            ("# " + "a" * 70_000, " can't be read: too large."),
        ],
        ids=["rule", "YAML", "nested", "large"],
    )
    def test_that_are_wrong_are_a_note_and_change_nothing(self, audit, text, said):
        done = audit.scan({**settings(text), "a.html": page(GA)})
        assert audit.statuses() == {"Google Analytics": "open"}
        [note] = done.coverage.notes
        assert note.startswith(f".assent.yml{said}")
        assert note.endswith("The scan ignored it.")

    def test_apply_to_a_linked_folder_although_they_are_outside_of_it(self, audit, repository):
        repositories.link_project(repository.repository_id, Link(repository.links[0].project_id, None, "web", False))
        done = audit.scan({**settings("exclude: [web/old/]\n"), "web/a.html": page(GA), "web/old/b.html": page(GA)})
        assert {it.location.path for it in found_by(done)} == {"web/a.html"}

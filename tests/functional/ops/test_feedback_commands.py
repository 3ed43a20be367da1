"""`assent-ops feedback`."""

import pytest

from controlplane.store import feedback
from tests.functional.ops.conftest import Ops
from tests.support.each import each
from tests.support.world import table_dump

DAY_SECONDS = 86_400
CALLER, OTHER = "usr_0123456789abcdef", "org_fedcba9876543210"


def submit(message: str, caller: str = CALLER, category: str = "bug", **fields: str) -> str:
    return feedback.submit_report(caller, {"category": category, "message": message, **fields}).reference


class TestList:
    def test_feedback_list_shows_todays_reports_newest_first(self, ops: Ops, now):
        first = submit("The list is empty.\nAlways.", surface="api")
        now.advance(1)
        second = submit("x" * 300)
        listed = ops("feedback", "list").document
        assert [entry["reference"] for entry in listed] == [second, first]
        assert listed[1] == {
            "reference": first,
            "createdAt": "2026-03-04T05:06:07.000Z",
            "category": "bug",
            "surface": "api",
            "callerId": CALLER,
            "message": "The list is empty. Always.",
        }
        assert len(listed[0]["message"]) == 100

    def test_feedback_list_takes_a_day_or_several(self, ops: Ops, now):
        old = submit("It fails.")
        now.advance(DAY_SECONDS)
        new = submit("It fails.")
        assert [entry["reference"] for entry in ops("feedback", "list").document] == [new]
        assert [entry["reference"] for entry in ops("feedback", "list", "--day", "2026-03-04").document] == [old]
        assert [entry["reference"] for entry in ops("feedback", "list", "--days", "2").document] == [new, old]

    def test_feedback_list_shows_all_reports_of_a_busy_day(self, ops: Ops):
        made = {submit("It fails.", f"usr_{number:016d}") for number in range(120)}
        assert {entry["reference"] for entry in ops("feedback", "list").document} == made

    def test_feedback_list_says_that_intake_is_paused(self, ops_text: Ops):
        assert "paused" not in ops_text("feedback", "list").stderr
        feedback.set_intake(paused=True)
        assert "New reports have been paused since 2026-03-04T05:06:07.000Z." in ops_text("feedback", "list").stderr

    @each("day", ["yesterday", "2026-02-30", "2026-3-4", "", "FEEDBACK#"])
    def test_feedback_list_exits_2_for_an_invalid_day(self, ops: Ops, day: str):
        assert ops("feedback", "list", "--day", day).exit_code == 2


class TestShow:
    def test_feedback_show_prints_the_whole_report(self, ops: Ops):
        reference = submit("It fails.", surface="cli", requestId="r-1", reproduction="a\nb")
        expected = {
            "reference": reference,
            "createdAt": "2026-03-04T05:06:07.000Z",
            "callerId": CALLER,
            "category": "bug",
            "surface": "cli",
            "message": "It fails.",
            "expected": None,
            "actual": None,
            "reproduction": "a\nb",
            "requestId": "r-1",
            "operation": None,
            "clientName": None,
            "clientVersion": None,
        }
        assert ops("feedback", "show", reference).document == expected
        assert ops("feedback", "show", reference.lower()).document == expected

    def test_terminal_control_characters_in_a_report_are_escaped(self, ops_text: Ops):
        reference = submit("\x1b[2J[red]It fails.\x1b]0;x\x07")
        shown = ops_text("feedback", "show", reference).stdout
        assert "\x1b" not in shown
        assert "[red]It fails." in shown

    @each("reference", ["FDB-20260304-000000-000000-000000", "FDB-20260304", "FEEDBACK#2026-03-04", "", "x" * 2_000])
    def test_feedback_show_exits_3_for_an_unknown_report(self, ops: Ops, reference: str):
        assert ops("feedback", "show", reference).exit_code == 3


class TestCluster:
    def test_feedback_cluster_ignores_case_numbers_and_ids(self, ops: Ops, now):
        first = submit("Creating project 17 answers 400 for a wildcard website.", surface="api")
        now.advance(1)
        second = submit("creating project 4711 answers 400 for a WILDCARD website!", OTHER, surface="docs")
        now.advance(1)
        submit("The page of members is slow.", OTHER)
        groups = ops("feedback", "cluster").document
        assert [group["reports"] for group in groups] == [2, 1]
        assert groups[0] == {
            "reports": 2,
            "callers": 2,
            "category": "bug",
            "surfaces": ["api", "docs"],
            "firstAt": "2026-03-04T05:06:07.000Z",
            "lastAt": "2026-03-04T05:06:08.000Z",
            "message": "Creating project 17 answers 400 for a wildcard website.",
            "references": [first, second],
            "similarity": [1.0, 1.0],
        }

    def test_feedback_cluster_separates_categories(self, ops: Ops):
        submit("It is slow.")
        submit("It is slow.", category="performance")
        assert len(ops("feedback", "cluster").document) == 2

    def test_feedback_cluster_takes_a_minimum_similarity(self, ops: Ops, now):
        submit("the list of projects is empty")
        now.advance(1)
        submit("the list of members is empty")
        assert len(ops("feedback", "cluster", "--least", "0.7").document) == 1
        assert len(ops("feedback", "cluster", "--least", "0.8").document) == 2

    def test_feedback_cluster_spans_several_days(self, ops: Ops, now):
        submit("It fails.")
        now.advance(DAY_SECONDS)
        submit("It fails.")
        (group,) = ops("feedback", "cluster").document
        assert (group["reports"], group["callers"]) == (2, 1)
        assert ops("feedback", "cluster", "--days", "1").document[0]["reports"] == 1

    def test_feedback_cluster_is_empty_without_reports(self, ops: Ops):
        assert ops("feedback", "cluster").document == []


class TestPause:
    def test_feedback_intake_can_be_paused_and_resumed(self, ops: Ops):
        assert ops("feedback", "pause").document == {"paused": True}
        with pytest.raises(feedback.IntakePaused):
            submit("It fails.")
        assert ops("feedback", "resume").document == {"paused": False}
        assert submit("It fails.")

    def test_pausing_feedback_twice_changes_nothing(self, ops: Ops):
        ops("feedback", "pause")
        before = table_dump()
        ops("feedback", "pause")
        assert table_dump() == before
